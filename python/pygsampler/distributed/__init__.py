"""Graphs in parts, which lie in several processes, on one machine or many.

``partition`` writes a graph in parts of contiguous vertices, and ``open`` gives each process a
graph to sample, of which it has one part. ``share`` is for a graph on the GPUs of one machine.
"""

from pygsampler.distributed.exchange import Exchange, TorchExchange
from pygsampler.distributed.features import DistributedFeatures
from pygsampler.distributed.graph import DistributedGraph
from pygsampler.distributed.opened import open
from pygsampler.distributed.partition import Partition, Shard, partition
from pygsampler.distributed.peers import share, share_features
from pygsampler.distributed.ray_exchange import RayExchange
from pygsampler.distributed.reorder import reorder
from pygsampler.distributed.typed_graph import DistributedHeteroGraph
from pygsampler.distributed.typed_partition import TypedPartition, TypedShard, partition_types

__all__ = [
    "DistributedFeatures",
    "DistributedGraph",
    "DistributedHeteroGraph",
    "Exchange",
    "Partition",
    "RayExchange",
    "Shard",
    "TorchExchange",
    "TypedPartition",
    "TypedShard",
    "open",
    "partition",
    "partition_types",
    "reorder",
    "share",
    "share_features",
]


def __dir__() -> list[str]:
    return sorted(__all__)
