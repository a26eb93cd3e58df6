"""Process Pods: Pods of a development cluster run as processes of this machine, with logs, exec, attach and port-forward.

This package is optional: nothing but `kubewright dev --pods=process` imports it. Its entry point is `ProcessPods`, which a
`DevCluster` is given. Read in this order: `pods` (all Pods), `pod_processes` (one Pod), `container_process` (one
container: start, probe, restart, stop), `preparation` with `commands`, `environment`, `folders` and `values` (what a process
is started with), `child` with `descriptors`, `listeners`, `reaper` and `orphans` (processes of the operating system),
`health`, `probes` and `grpc_health` (probes), `container_state` (status), `output` and `streams` (logs, exec, attach, ports),
`endpoints` with `streaming` (the subresources of the API).
"""

from kubewright.processpods.pods import ProcessPods

__all__ = ["ProcessPods"]
