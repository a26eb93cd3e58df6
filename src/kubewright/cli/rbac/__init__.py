"""`kubewright rbac`: the rules of an operator compared with what it asked for."""
