"""`kubewright prove`: `command` is the entry point, `workers` runs cases in processes, `worker` is such a process."""
