"""``LaborSampler``: LABOR behind PyG's ``BaseSampler``, and ``labor=`` of this module's loaders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch_geometric.data import Data
from torch_geometric.sampler import NumNeighbors, SamplerOutput
from torch_geometric.sampler.base import SubgraphType

from pygsampler._adapters.engine_batch import worker_threads
from pygsampler._arrays import devices
from pygsampler._batch.induced_edges import induced_edges
from pygsampler._engine.checks import describe
from pygsampler._engine.memory import Memory
from pygsampler._graph.graph import Graph, HeteroGraph, is_homogeneous
from pygsampler.pyg import options
from pygsampler.pyg.base_sampler import Sampler
from pygsampler.pyg.hetero_output import hetero_output
from pygsampler.pyg.hetero_sampler import HeteroPGSampler
from pygsampler.pyg.neighbor_sampler import ClassByData
from pygsampler.samplers import labor

__all__ = ["LaborSampler", "labor_sampler"]

_NODE = "node"
_EDGE = _NODE, "to", _NODE


class LaborSampler(ClassByData):
    """LABOR for PyG's loaders: fewer nodes at the same variance.

        sampler = pygsampler.pyg.LaborSampler(data, [10, 5], importance=1)
        loader = NeighborLoader(data, [10, 5], neighbor_sampler=sampler, batch_size=1024)

    ``NodeLoader``, ``LinkLoader``, ``NeighborLoader`` and ``LinkNeighborLoader`` of PyG and of this
    module take it; ``NeighborLoader(data, [10, 5], labor="poisson")`` of this module creates one.
    Batches are like batches of ``PGSampler``; this module's loaders add ``edge_weights`` in the
    order of ``e_id``, in heterogeneous data for each edge type.

    Parameters
    ----------
    data : Data, HeteroData, Graph, or (FeatureStore, GraphStore)
        As for ``PGSampler``.
    num_neighbors : list of int, dict of edge types to lists of int, or NumNeighbors
        The edges of a node in the mean, in heterogeneous data by each edge type, the seeds' number
        first; -1 takes all.
    importance, exact, layer_dependency
        See ``pygsampler.LaborSampler``.
    weight_attr : str, optional
        As for ``PGSampler``.
    edge_weights : str, optional
        ``"ht"``: one over the chance of each edge, ``"mean"``: DGL's, or None. For directional
        subgraphs.
    subgraph_type, is_sorted, sample_direction, seed, device
        As for ``PGSampler``.

    Raises
    ------
    TypeError, ValueError, IndexError, NotImplementedError, CudaError
        For the reasons of ``PGSampler``.

    Notes
    -----
    ``set_seed``, ``set_epoch`` and random numbers work like those of ``PGSampler``. A GPU samples
    if ``device``, or the device of the data, is a GPU.
    """

    _options_names = MappingProxyType({"prob": "weight_attr"})
    # The graph as one of a type of nodes and one of edges.
    _types: Graph | None = None

    def __init__(
        self,
        data: Any,
        num_neighbors: Sequence[int] | Mapping[Any, Sequence[int]] | NumNeighbors,
        *,
        importance: int = 0,
        exact: bool = False,
        layer_dependency: bool = False,
        weight_attr: str | None = None,
        edge_weights: str | None = "ht",
        subgraph_type: str | SubgraphType = "directional",
        is_sorted: bool = False,
        sample_direction: str = "forward",
        seed: int | None = None,
        device: Any = None,
    ) -> None:
        self._choose_class(data)
        sampler = labor.LaborSampler(
            # Until the types of the graph are known.
            [0],
            importance=importance,
            exact=exact,
            layer_dependency=layer_dependency,
            frontier="new",
            prob=weight_attr,
            edge_weights=edge_weights,
            seed=seed,
        )
        super().__init__(
            data,
            sampler,
            subgraph_type=subgraph_type,
            device=self._graph_device(data, device),
            is_sorted=is_sorted,
            sample_direction=sample_direction,
        )
        self._num_neighbors, fanouts = self._fanouts(num_neighbors)
        self._sampler: labor.LaborSampler = sampler._with(fanouts=fanouts or [0])
        self._identity.set_seed(seed)
        self._stored = isinstance(data, (tuple, list))

    def _graph_device(self, data: Any, device: Any) -> Any:
        self._place = options.place(_where(data) if device is None else device)
        # The graph of types is put there.
        return "cpu"

    def _fanouts(self, num_neighbors: Any) -> tuple[NumNeighbors, list[Any]]:
        counts = options.num_neighbors(num_neighbors)
        return NumNeighbors(list(counts)), counts[::-1]

    @property
    def device(self) -> str:
        """The device that it samples on: ``"cpu"`` or, for one, ``"cuda:0"``."""
        return devices.name(self._place)

    def _hetero_graph(self) -> Graph:
        if self._types is None:
            if self._graph._service is None:
                self._types = HeteroGraph({_EDGE: self._graph}).to(self.device)
            else:
                parts: Any = self._graph
                self._types = parts._as_one_type(_EDGE)
        return self._types

    def _edge_array(self) -> Graph:
        group: Any = self._sampler.sampled_graph(self._hetero_graph())
        return Graph._wrap(group._open()[_EDGE])

    def _launched(
        self, seeds: Any, identity: tuple[int, int], times: Any, asynchronous: bool = False
    ) -> Any:
        graph: Any = self._hetero_graph()
        epoch, batch = identity
        return self._sampler.launch(
            graph,
            {_NODE: seeds},
            epoch=epoch,
            batch=batch,
            threads=worker_threads(),
            form="array" if self._subgraph_type == SubgraphType.induced else "edge_lists",
            asynchronous=asynchronous,
        )

    def _sample(
        self, seeds: torch.Tensor, identity: tuple[int, int], times: torch.Tensor | None
    ) -> SamplerOutput:
        self._check_factors()
        made = self._result(seeds, identity, times)
        if type(made) is not Memory:
            # A graph in parts is sampled on the CPU.
            made = made.to(self.device)
        schema = self._hetero_graph()._schema
        found = hetero_output(made, schema, _NODE, (_EDGE,), self._num_neighbors.num_hops)
        node = found.node[_NODE]
        if self.subgraph_type == SubgraphType.induced:
            edges = induced_edges(self._edge_array(), node, None)
            out = SamplerOutput(node, edges.row, edges.col, edges.edge)
        else:
            out = SamplerOutput(
                node,
                found.row[_EDGE],
                found.col[_EDGE],
                found.edge[_EDGE],
                num_sampled_nodes=found.num_sampled_nodes[_NODE],
                num_sampled_edges=found.num_sampled_edges[_EDGE],
            )
        # Hop by hop, in a hop row by row; so are all edges among the nodes.
        out.sort_order = "col"
        weights = getattr(found, "edge_weights", None)
        if weights is not None:
            # PyG's class has no place for these; our loaders look for them.
            out.edge_weights = weights[_EDGE]
        return out

    def __repr__(self) -> str:
        return f"pygsampler.pyg.LaborSampler({self._sampler!r}, {self.subgraph_type.value!r})"


class _HeteroLabor(HeteroPGSampler, LaborSampler):
    """The methods of a `LaborSampler` of heterogeneous data."""

    _mirrored = False
    # The graph has types already.
    device = Sampler.device
    _edge_array = Sampler._edge_array
    _launched = Sampler._launched
    __repr__ = LaborSampler.__repr__

    def _graph_device(self, data: Any, device: Any) -> Any:
        return device

    @property  # type: ignore[misc]
    def replace(self) -> bool:
        """False."""
        return False

    @property  # type: ignore[misc]
    def disjoint(self) -> bool:
        """False: seeds share nodes."""
        return False

    @property  # type: ignore[misc]
    def time_attr(self) -> None:
        """None: edges have no times."""
        return None

    def _engine_sampler(self) -> Any:
        return self._sampler


LaborSampler._hetero = _HeteroLabor


def _where(data: Any) -> Any:
    """Returns the device of the edges of ``data``."""
    if is_homogeneous(data):
        return data.device
    edges = data.edge_index if isinstance(data, Data) else None
    return "cpu" if edges is None else edges.device


# Options of samplers that draw each row alone, with the values that turn them off.
_WITHOUT: Mapping[str, Any] = MappingProxyType(
    {"replace": False, "disjoint": False, "time_attr": None, "temporal_strategy": "uniform"}
)


def labor_sampler(
    labor: Any, data: Any, num_neighbors: Any, seed: Any, device: Any, arguments: Any
) -> Sampler:
    """The sampler of a loader with ``labor=``, of whose arguments ``arguments`` are the others."""
    if labor not in ("exact", "poisson"):
        raise ValueError(f"labor: expected 'exact', 'poisson' or None, got {describe(labor)}")
    for name, usual in _WITHOUT.items():
        if arguments[name] != usual:
            raise ValueError(
                f"{name}: expected {usual!r} with labor={labor!r}, which has none, "
                f"got {describe(arguments[name])}"
            )
    names = "weight_attr", "edge_weights", "subgraph_type", "is_sorted"
    return LaborSampler(
        data,
        num_neighbors,
        exact=labor == "exact",
        seed=seed,
        device=device,
        **{name: arguments[name] for name in names},
    )
