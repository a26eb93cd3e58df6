"""Process Pods: run the Pods of a dev cluster as processes of this machine, with logs, exec, attach and port-forward.

This package is optional: only `kubewright dev` and `kubewright.envtest.cluster` import it. The entry point is `ProcessPods` in `pods`,
which is passed to a `DevCluster`.

Read in this order: `pods` (all Pods), `pod_processes` (one Pod), `container_process` (one container: start, probe,
restart, stop), `preparation` with `environment` and `volumes` (what a process is started with), `child` and `reaper`
(operating system processes), `probes` with `grpc_health`, `container_state` (statuses), `output` and `streams` (logs,
exec, attach, port-forward), `endpoints` with the package `streaming` (the Pod subresources of the API).
"""

from kubewright.processpods.pods import ProcessPods

__all__ = ["ProcessPods"]
