"""`kubewright run`: an operator at work, started again when its files change."""
