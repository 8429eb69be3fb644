"""Graphs in parts, which lie in several processes, on one machine or many.

``partition`` writes a graph in parts of contiguous vertices, and ``open`` gives each process a
graph to sample, of which it has one part. ``share`` is for a graph on the GPUs of one machine.
"""

from pygsampler.distributed.exchange import Exchange, TorchExchange
from pygsampler.distributed.features import DistributedFeatures
from pygsampler.distributed.graph import DistributedGraph, open
from pygsampler.distributed.partition import Partition, Shard, partition
from pygsampler.distributed.peers import share, share_features
from pygsampler.distributed.ray_exchange import RayExchange
from pygsampler.distributed.reorder import reorder

__all__ = [
    "DistributedFeatures",
    "DistributedGraph",
    "Exchange",
    "Partition",
    "RayExchange",
    "Shard",
    "TorchExchange",
    "open",
    "partition",
    "reorder",
    "share",
    "share_features",
]
