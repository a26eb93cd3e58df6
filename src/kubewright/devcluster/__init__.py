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
- Scheduling and nodes: `scheduler` with `node_filters` and `preemption`, `node_lifecycle`.
- The simulated nodes: `kubelet`, `addresses`, `pod_lifecycle` (statuses and conditions), `pod_scenarios` (simulated
  Pods) with `simulated_commands` (what their containers do), `provisioner`.
- Other controllers: `namespaces`, `garbage`, `endpoints`, `volumes`, `quotas`, `disruptions`, `autoscalers`,
  `aggregation`, `policies`, `certificate_requests`, `token_secrets`.
"""

from kubewright.devcluster.addresses import MAX_NODES, NODE
from kubewright.devcluster.cluster import DevCluster, register_nodes
from kubewright.devcluster.kubelet import kubelet_operator
from kubewright.devcluster.pod_scenarios import COMMAND_ANNOTATION, SCENARIO_ANNOTATION, PodScenario
from kubewright.devcluster.scratch import Scratch
from kubewright.devcluster.simulated_commands import extended_programs

__all__ = [
    "COMMAND_ANNOTATION",
    "MAX_NODES",
    "NODE",
    "SCENARIO_ANNOTATION",
    "DevCluster",
    "PodScenario",
    "Scratch",
    "extended_programs",
    "kubelet_operator",
    "register_nodes",
]
