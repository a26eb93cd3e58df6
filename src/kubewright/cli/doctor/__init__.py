"""`kubewright doctor`: findings about this machine, the cluster and an operator, each with its remedy."""
