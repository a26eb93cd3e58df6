"""`kubewright plan`: run an operator on a copy of the cluster's state, and show what it changed."""
