"""``ClusterGCNSampler`` in the place of DGL's."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pygsampler._adapters.clusters import cluster_places, stored_clusters
from pygsampler._adapters.sampler_options import Renamed
from pygsampler._engine.checks import boolean, describe, integer
from pygsampler._graph.graph import Graph
from pygsampler.dgl.graph import check_graph
from pygsampler.dgl.options import as_ids
from pygsampler.dgl.sampler import Sampler
from pygsampler.dgl.walk_arguments import DGLValueError
from pygsampler.samplers import clusters
from pygsampler.samplers.subgraphs import induced

__all__ = ["ClusterGCNSampler"]

_MODES = ("k-way", "recursive")


class ClusterGCNSampler(Sampler):
    """Cluster-GCN (Chiang et al., 2019) as a replacement of ``dgl.dataloading.ClusterGCNSampler``.

    The graph is cut once into ``k`` parts by METIS, which comes with pymetis, ``pip install
    pymetis``; the METIS of DGL 1.1.3 never ends on some graphs. ``sampler.sample(g,
    partition_ids)`` is a DGLGraph with ``dgl.NID``, ``dgl.EID`` and the graph's features: the nodes
    of these parts, one part behind the other, and all edges of the graph among them, those between
    the parts too.

    Parameters
    ----------
    g : dgl.DGLGraph
        A homogeneous graph.
    k : int
        The number of parts.
    cache_path : str, optional
        The file to which the parts are written and, if it exists, from which they are read. None:
        no file. DGL's own files are refused: they are pickles, and do not say which graph they
        belong to.
    balance_ntypes : None
        Not offered: NotImplementedError.
    balance_edges : bool
        Parts have about as many in-edges, instead of nodes, as each other.
    mode : str
        ``'k-way'``, or ``'recursive'``: by halves.
    prefetch_ndata, prefetch_edata, output_device
        As in DGL.

    Notes
    -----
    ``partition_offset`` and ``partition_node_ids`` have DGL's meaning: the nodes of part i are
    ``partition_node_ids[partition_offset[i]:partition_offset[i + 1]]``.

    Raises
    ------
    TypeError, ValueError
        For arguments of a wrong type or value, and for a file of another graph, or of other parts.
    ImportError
        Without pymetis, unless the parts are read.
    """

    prefetch_ndata = Renamed("prefetch_node_feats")
    prefetch_edata = Renamed("prefetch_edge_feats")

    def __init__(
        self,
        g: Any,
        k: int,
        cache_path: str | os.PathLike[str] | None = "cluster_gcn.npz",
        balance_ntypes: None = None,
        balance_edges: bool = False,
        mode: str = "k-way",
        prefetch_ndata: Any = None,
        prefetch_edata: Any = None,
        output_device: Any = None,
    ) -> None:
        check_graph(g)
        if not g.is_homogeneous:
            raise NotImplementedError("g: expected a homogeneous graph, got one of several types")
        self._k = integer(k, "k", 1, max(g.num_nodes(), 1))
        if mode not in _MODES:
            raise DGLValueError(f"mode: expected 'k-way' or 'recursive', got {mode!r}")
        super().__init__(
            induced(seed=0),
            prefetch_node_feats=prefetch_ndata,
            prefetch_edge_feats=prefetch_edata,
            output_device=output_device,
        )
        if balance_ntypes is not None:
            raise NotImplementedError(
                f"balance_ntypes: expected None, got {describe(balance_ntypes)}; samplers.clusters "
                "takes weights"
            )
        by_edges = boolean(balance_edges, "balance_edges")

        def make() -> Any:
            weights = g.in_degrees().cpu().long().numpy() if by_edges else None
            graph = Graph.from_dgl(g.cpu())
            return clusters(graph, self._k, vertex_weights=weights, recursive=mode == "recursive")

        path = None if cache_path is None else Path(cache_path)
        assigned = stored_clusters(path, "cache_path", self._k, g.num_nodes(), g.edges(), make)
        # By part, in ascending order within each.
        nodes = np.argsort(assigned, kind="stable")
        offset = np.concatenate([[0], np.cumsum(np.bincount(assigned, minlength=self._k))])
        self.partition_node_ids = torch.from_numpy(nodes)
        self.partition_offset = torch.from_numpy(offset)

    def sample(self, g: Any, partition_ids: Any) -> Any:
        """The subgraph of some parts of ``g``.

        Parameters
        ----------
        g : dgl.DGLGraph
            The graph that was cut.
        partition_ids : int32 or int64, shape [N]
            Distinct numbers of parts, where ``g`` is.

        Returns
        -------
        dgl.DGLGraph
            On ``output_device``.

        Raises
        ------
        TypeError, ValueError, IndexError
            For numbers of a wrong type or shape, that are twice there, or that are no parts; and
            for a graph with another number of nodes.
        """
        check_graph(g)
        ids = as_ids(partition_ids, "partition_ids")
        parts = ids.cpu().long()
        if len(parts) and not 0 <= int(parts.min()) <= int(parts.max()) < self._k:
            raise IndexError(
                f"partition_ids: expected numbers from 0 to {self._k - 1}, got {parts.tolist()}"
            )
        if len(set(parts.tolist())) != len(parts):
            raise ValueError(f"partition_ids: expected distinct parts, got {parts.tolist()}")
        if g.num_nodes() != len(self.partition_node_ids):
            raise ValueError(
                f"g: expected the graph that was cut, of {len(self.partition_node_ids)} nodes, "
                f"got one of {g.num_nodes()}"
            )
        seeds = self.partition_node_ids[cluster_places(self.partition_offset, parts)]
        _, _, subgraph = super().sample(g, seeds.to(ids.device, g.idtype))
        return subgraph

    def __repr__(self) -> str:
        return f"pygsampler.dgl.ClusterGCNSampler(k={self._k})"
