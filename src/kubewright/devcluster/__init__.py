"""A cluster for development and tests: the embedded API server with controllers, a scheduler and a kubelet.

The entry point is `DevCluster` in `cluster`. The controllers use kubewright's own runtime; each module has a function
`controller()` or `controllers()` that declares its own. Pods are simulated unless a `PodRunner` such as
`kubewright.processpods` runs them.

Read in this order:

- `cluster` starts everything; `loopback` connects its controllers to the server without a network; `clock` and
  `scratch` are its time and its temporary directory.
- Shared by controllers: `workloads` (adoption, counting Pods), `statuses`, `batching`, `revisions`, `rollouts`.
- Workload controllers: `deployments`, `replica_sets`, `stateful_sets`, `daemon_sets`, `jobs` with `job_pods`,
  `cron_jobs` with `cron`.
- Scheduling and nodes: `scheduler` with `node_filters`, `node_lifecycle`.
- The simulated node: `kubelet`, `addresses`, `pod_lifecycle` (statuses and conditions), `pod_scenarios` (simulated
  Pods), `provisioner`.
- Other controllers: `namespaces`, `garbage`, `endpoints`, `volumes`, `quotas`, `disruptions`, `autoscalers`,
  `aggregation`, `certificate_requests`.
"""

from kubewright.devcluster.addresses import NODE
from kubewright.devcluster.cluster import DevCluster, register_node
from kubewright.devcluster.kubelet import kubelet_operator
from kubewright.devcluster.pod_scenarios import SCENARIO_ANNOTATION, PodScenario
from kubewright.devcluster.scratch import Scratch

__all__ = [
    "NODE",
    "SCENARIO_ANNOTATION",
    "DevCluster",
    "PodScenario",
    "Scratch",
    "kubelet_operator",
    "register_node",
]
