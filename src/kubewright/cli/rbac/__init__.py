"""`kubewright rbac`: compare the rules of an operator with its recorded requests."""
