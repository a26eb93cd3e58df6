"""Shards: divide the objects of an operator over all of its replicas, with a Lease for each shard.

`kw.Operator(..., shards=8)` divides by uid; `shards=Shards(8, by="namespace")` by namespace.
"""

from kubewright.api.sharding import Shards

__all__ = ["Shards"]
