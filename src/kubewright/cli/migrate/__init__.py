"""`kubewright migrate`: migrate stored objects to the current storage version."""
