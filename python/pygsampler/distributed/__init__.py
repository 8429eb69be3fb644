"""Partitioned graphs, spread over several processes, on one machine or many.

``partition`` writes a graph as shards of contiguous nodes, and ``open`` gives each process a graph
to sample, of which it has one shard. ``share`` is for a graph on the GPUs of one machine.
"""

from pygsampler._engine.public_home import set_public_module
from pygsampler.distributed.exchange import Exchange, TorchExchange
from pygsampler.distributed.features import DistributedFeatures
from pygsampler.distributed.graph import DistributedGraph
from pygsampler.distributed.open_graph import open_graph
from pygsampler.distributed.partition import Partition, Shard, partition
from pygsampler.distributed.ray_exchange import RayExchange
from pygsampler.distributed.reorder import reorder
from pygsampler.distributed.shared_graph import share, share_features

__all__ = [
    "DistributedFeatures",
    "DistributedGraph",
    "Exchange",
    "Partition",
    "RayExchange",
    "Shard",
    "TorchExchange",
    "open_graph",
    "partition",
    "reorder",
    "share",
    "share_features",
]

set_public_module(globals())


def __dir__() -> list[str]:
    return sorted(__all__)
