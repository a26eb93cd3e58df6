"""`kubewright doctor`: checks of this machine, the cluster and an operator's setup, with suggested fixes."""
