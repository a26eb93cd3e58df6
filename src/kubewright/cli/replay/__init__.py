"""`kubewright replay`: run a recorded reconcile again on this machine."""
