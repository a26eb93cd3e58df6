"""`kubewright run`: run an operator, and restart it when its files change."""
