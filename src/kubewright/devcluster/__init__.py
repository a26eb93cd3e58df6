"""A cluster to develop on: the embedded API server with the controllers, scheduler and kubelet around it.

Written on kubewright's own runtime. `cluster` puts it together; `namespaces`, `deployments`, `replica_sets`,
`scheduling` and `kubelet` are controllers like any author's; `garbage` follows every kind there is. `stages`
and `rollouts` are the pure parts, `fates` makes a Pod fail on request. Pods only pretend to run, unless a `PodRunner`
such as `kubewright.processpods` is given.
"""

from kubewright.devcluster.cluster import DevCluster, register_node
from kubewright.devcluster.fates import ANNOTATION, Fate
from kubewright.devcluster.kubelet import kubelet_operator
from kubewright.devcluster.places import NODE
from kubewright.devcluster.scratch import Scratch

__all__ = ["ANNOTATION", "NODE", "DevCluster", "Fate", "Scratch", "kubelet_operator", "register_node"]
