"""`kubewright plan`: an operator tried on a copy of the cluster, and what that changed."""
