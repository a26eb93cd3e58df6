"""Pods as processes of this machine: what a kubelet does with containers, done with the commands that are here.

`pods` runs them all; a Pod's processes are a `crew` of `member`s, each started in its `surroundings` as a `child`.
`facts` turns what is known of them into a status, `streams` serves logs, exec and attach.
"""

from kubewright.devcluster.processes.pods import ProcessPods
from kubewright.devcluster.processes.streams import NoContainers

__all__ = ["NoContainers", "ProcessPods"]
