"""`kubewright why`: print why an object is as it is. `command` is the command, `shown` its text output."""
