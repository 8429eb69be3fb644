"""``ClusterData`` and ``ClusterLoader`` in the places of PyG's."""

from __future__ import annotations

import copy
from contextlib import nullcontext
from typing import Any

import torch
from torch_geometric.data import Data
from torch_geometric.loader.cluster import ClusterData as _ClusterData
from torch_geometric.loader.cluster import Partition
from torch_geometric.utils import select

from pygsampler._adapters.batch_number import BatchNumber
from pygsampler._adapters.clusters import cluster_places, induced_subgraph
from pygsampler._engine.checks import describe, integer
from pygsampler._graph.graph import Graph
from pygsampler.pyg.order import SeededLoader
from pygsampler.pyg.shadow import check_data
from pygsampler.samplers import clusters

__all__ = ["ClusterData", "ClusterLoader"]


class ClusterData(_ClusterData):  # type: ignore[misc]
    """A graph in clusters, as a replacement of ``torch_geometric.loader.ClusterData``.

    It has PyG's arguments, attributes and files, and does not need pyg-lib or torch-sparse: METIS
    comes with pymetis, ``pip install pymetis``. Edges count in both directions for it, as METIS
    requires.

    Parameters
    ----------
    data, num_parts, recursive, save_dir, filename, log, keep_inter_cluster_edges, sparse_format
        PyG's arguments.

    Raises
    ------
    ImportError
        Without pymetis, unless the clusters are read from ``save_dir``.
    ValueError
        For clusters in ``save_dir`` of another number of nodes or edges.
    """

    def __init__(
        self,
        data: Any,
        num_parts: int,
        recursive: bool = False,
        save_dir: str | None = None,
        filename: str | None = None,
        log: bool = True,
        keep_inter_cluster_edges: bool = False,
        sparse_format: str = "csr",
    ) -> None:
        check_data(data)
        integer(num_parts, "num_parts", 1, max(data.num_nodes, 1))
        # PyG's files have an object of this class, which torch is to be told that it may load.
        safe = getattr(torch.serialization, "safe_globals", None)
        with nullcontext() if safe is None else safe([Partition]):
            super().__init__(
                data,
                num_parts,
                recursive,
                save_dir,
                filename,
                log,
                keep_inter_cluster_edges,
                sparse_format,
            )

    def _metis(self, edge_index: torch.Tensor, num_nodes: int) -> torch.Tensor:
        pairs = edge_index.cpu()
        graph = Graph.from_coo(pairs[0], pairs[1], num_nodes=num_nodes)
        found = clusters(graph, self.num_parts, recursive=bool(self.recursive))
        return torch.from_numpy(found).to(edge_index.device)

    def _permute_data(self, data: Data, partition: Any) -> Data:
        kept = len(partition.node_perm), len(partition.edge_perm)
        if kept != (data.num_nodes, data.num_edges):
            raise ValueError(
                f"save_dir: expected clusters of {data.num_nodes} nodes and {data.num_edges} "
                f"edges, got those of {kept[0]} and {kept[1]}; remove the file, or give another"
            )
        return super()._permute_data(data, partition)


class ClusterLoader(SeededLoader):
    """Batches of clusters, in the place of ``torch_geometric.loader.ClusterLoader``.

    A batch is a ``Data`` of the nodes of ``batch_size`` clusters, one behind the other, and of all
    edges among them, those between the clusters too: what PyG's has, in PyG's order.

    Parameters
    ----------
    cluster_data : ClusterData
        Of this module, or PyG's.
    seed : int, optional
        64-bit seed of the order with ``shuffle=True``, which alone decides it: passes are counted.
        Default: torch's.
    **kwargs
        Those of torch's ``DataLoader``.
    """

    def __init__(self, cluster_data: Any, *, seed: int | None = None, **kwargs: Any) -> None:
        if not isinstance(cluster_data, _ClusterData):
            raise TypeError(f"cluster_data: expected a ClusterData, got {describe(cluster_data)}")
        self.cluster_data = cluster_data
        clusters, collate = range(len(cluster_data)), _ClusterCollate(cluster_data)
        super().__init__(clusters, BatchNumber(seed), collate, **kwargs)


class _ClusterCollate:
    """Makes a batch of the numbers of its clusters; workers get it without the loader."""

    def __init__(self, cluster_data: Any) -> None:
        self._of = cluster_data
        partition = cluster_data.partition
        # By rows or by columns: what is induced is so for the reversed edges alike.
        self._graph = Graph.from_csc(
            partition.indptr.cpu(), partition.index.cpu(), num_nodes=len(partition.node_perm)
        )

    def __call__(self, batch: Any) -> Data:
        partition, source = self._of.partition, self._of.data
        nodes = cluster_places(partition.partptr, torch.as_tensor(batch))
        subgraph = induced_subgraph(self._graph, nodes)
        # The edges are reversed if the clusters are stored by rows.
        row, col = subgraph.edge_index
        by_rows = partition.sparse_format == "csr"
        edge_index = torch.stack([col, row] if by_rows else [row, col])
        edges = subgraph.edge_ids.long()
        out = copy.copy(source)
        for name, value in source.items():
            if name == "num_nodes":
                out.num_nodes = len(nodes)
            elif source.is_node_attr(name) or source.is_edge_attr(name):
                chosen = nodes if source.is_node_attr(name) else edges
                chosen = chosen.to(getattr(value, "device", "cpu"))
                out[name] = select(value, chosen, dim=source.__cat_dim__(name, value))
        out.edge_index = edge_index.to(partition.index.device)
        return out
