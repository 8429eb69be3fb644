"""``HGTLoader``: PyG's loader of HGT's subgraphs, with our sampler in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch_geometric import loader
from torch_geometric.data import HeteroData
from torch_geometric.sampler.base import SubgraphType

from pygsampler._engine.checks import describe
from pygsampler.pyg import loader_inputs, options
from pygsampler.pyg.batch_features import BatchFeatures
from pygsampler.pyg.check_graph import check_graph_matches
from pygsampler.pyg.graph import with_edge_index
from pygsampler.pyg.hetero_output import hetero_output
from pygsampler.pyg.hetero_sampler import HeteroRequests
from pygsampler.pyg.loader import _EngineLoader
from pygsampler.pyg.loader_inputs import check_input_type, check_mask, inputs_at
from pygsampler.samplers import hgt

if TYPE_CHECKING:
    pass

__all__ = ["HGTLoader", "HGTSampler"]


class HGTSampler(HeteroRequests):
    """HGT's subgraphs of a ``HeteroData`` for PyG's loaders, by pygsampler's engine.

    Takes the place of ``torch_geometric.sampler.HGTSampler``, and needs no torch-sparse.
    ``HGTLoader`` of this module makes one; PyG's ``NodeLoader(data, sampler, ...)`` takes one.

    Parameters
    ----------
    data : HeteroData, or (FeatureStore, GraphStore)
        As for ``PGSampler``.
    num_samples : list of int, or dict of node types to lists of int
        Nodes that each iteration chooses: of each type alike, or by type, all types of ``data`` and
        as many iterations of each. -1 takes all that a chosen node's edges come from.
    is_sorted, share_memory : bool
        Accepted for compatibility: edges are sorted if they are not, and processes share the graph.
    max_neighbors : int, optional
        As ``pygsampler.samplers.HGTSampler`` has it: a node with more in-edges of an edge type
        keeps that many, drawn once for the batch. None: all. PyG's number is 50.
    seed : int, optional
        As for ``PGSampler``.
    device : str, int or torch.device, optional
        Where to sample and where batches are: by default where the edges are.

    Notes
    -----
    ``set_seed`` and ``set_epoch`` are those of ``PGSampler``, and random numbers are as it says.

    Raises
    ------
    TypeError, ValueError, IndexError
        For arguments of a wrong type or value, naming the argument.
    """

    _names_only_type = True
    _mirrored = False

    def __init__(
        self,
        data: HeteroData,
        num_samples: Sequence[int] | Mapping[str, Sequence[int]],
        is_sorted: bool = False,
        share_memory: bool = False,
        *,
        max_neighbors: int | None = 50,
        seed: int | None = None,
        device: Any = None,
    ) -> None:
        if isinstance(data, HeteroData) and not data.edge_types:
            raise ValueError("data: expected a HeteroData with types of edges, got one without")
        options.flag(share_memory, "share_memory")
        super().__init__(
            data,
            hgt.HGTSampler(num_samples, max_neighbors=max_neighbors, seed=seed),
            subgraph_type=SubgraphType.induced,
            device=device,
            is_sorted=is_sorted,
        )
        self._identity.set_seed(seed)
        types = list(self._graph.node_types)
        if isinstance(num_samples, Mapping):
            missing = [kind for kind in types if kind not in num_samples]
            unknown = [kind for kind in num_samples if kind not in types]
            if missing or unknown:
                raise ValueError(
                    f"num_samples: expected a list for each type of nodes ({types}), got none for "
                    f"{missing}"
                    if missing
                    else f"num_samples: expected types of nodes of data ({types}), got {unknown}"
                )

    @property
    def subgraph_type(self) -> SubgraphType:
        """Induced: a batch has the edges among its nodes."""
        return self._subgraph_type

    @subgraph_type.setter
    def subgraph_type(self, subgraph_type: str | SubgraphType) -> None:
        if options.subgraph_type(subgraph_type) != SubgraphType.induced:
            raise ValueError(
                "subgraph_type: expected 'induced', as HGT's subgraphs are, got "
                f"{describe(subgraph_type)}"
            )
        self._subgraph_type = SubgraphType.induced

    @property
    def num_samples(self) -> Any:
        """Nodes that each iteration chooses, of each type alike or by type."""
        made: Any = self._sampler
        return made.num_samples

    def _names(self) -> tuple[None, None]:
        return None, None

    def _check_call(self, times: Any, where: str, more: dict[str, Any]) -> None:
        if times is not None:
            raise NotImplementedError(
                f"{where}: expected None, got {describe(times)}; HGT's subgraphs have no times"
            )
        super()._check_call(times, where, more)

    def _sample(self, seeds: Any, identity: tuple[int, int], times: Any) -> Any:
        batch = self._result(seeds, identity, times)
        kind, types = next(iter(seeds)), self._graph.edge_types
        out = hetero_output(batch, self._graph._schema, kind, types, 1)
        # None as in PyG: iterations are no hops, by which a layer could be trimmed.
        out.num_sampled_nodes = out.num_sampled_edges = None
        return out

    def _finished(self, out: Any) -> Any:
        return out

    def sample_from_edges(self, index: Any, neg_sampling: Any = None, **kwargs: Any) -> Any:
        """Raises NotImplementedError: HGT's subgraphs are around nodes.

        Parameters
        ----------
        index, neg_sampling, **kwargs
            The arguments of ``PGSampler.sample_from_edges``.
        """
        raise NotImplementedError(
            "sample_from_edges: expected a neighbor sampler, got a sampler of HGT's subgraphs, "
            "which are around nodes"
        )

    def __repr__(self) -> str:
        return f"pygsampler.pyg.{self._sampler!r}"


class HGTLoader(_EngineLoader, loader.NodeLoader):  # type: ignore[misc]
    """``torch_geometric.loader.HGTLoader`` with pygsampler's engine: change the import only.

    Takes PyG's arguments, and those of torch's ``DataLoader``, and gives PyG's batches. It needs no
    torch-sparse.

    Parameters
    ----------
    data : HeteroData, or (FeatureStore, GraphStore)
    num_samples : list of int, or dict of node types to lists of int
        Nodes that each iteration chooses: of each type alike, or by type.
    input_nodes : str, or (str, ids or mask)
        A type of nodes, or some of that type.
    seed, max_neighbors, device
        As ``HGTSampler`` has them, ``device`` by default the CPU with ``num_workers`` > 0.
        ``set_seed`` and ``set_epoch`` are as ``NeighborLoader`` has them.
    features, edge_features : mapping of str to mappings of types to arrays or Features, optional
        As ``NeighborLoader`` has them.
    prefetch : int, optional
        As ``NeighborLoader`` has it.
    **kwargs
        All others are PyG's.

    Raises
    ------
    TypeError, ValueError, IndexError
        As ``HGTSampler`` and, in the loop, its ``sample_from_nodes``; ``ValueError`` for ``data``
        that was changed, in the loop.
    """

    _sampler_name = "node_sampler"

    def __init__(
        self,
        data: HeteroData,
        num_samples: Sequence[int] | Mapping[str, Sequence[int]],
        input_nodes: Any,
        is_sorted: bool = False,
        transform: Any = None,
        transform_sampler_output: Any = None,
        filter_per_worker: bool | None = None,
        *,
        seed: int | None = None,
        max_neighbors: int | None = 50,
        device: Any = None,
        features: Mapping[str, Any] | None = None,
        edge_features: Mapping[str, Any] | None = None,
        prefetch: int | None = None,
        **kwargs: Any,
    ) -> None:
        self._take(prefetch, kwargs.get("num_workers"), None)
        if device is None and kwargs.get("num_workers"):
            # Workers cannot use their parent's GPU.
            device = "cpu"
        own = {"max_neighbors": max_neighbors, "seed": seed, "device": device}
        sampler = HGTSampler(data, num_samples, is_sorted, **own)
        check_input_type(data, input_nodes)
        input_nodes = loader_inputs.input_nodes(input_nodes, True)
        rows = BatchFeatures(features, edge_features, sampler, hetero=True)
        if filter_per_worker is None and rows.on_gpu:
            # Workers cannot use their parent's GPU.
            filter_per_worker = False
        self._rows, self._layout = rows, "coo"
        super().__init__(
            data=rows.without(with_edge_index(data)),
            node_sampler=sampler,
            input_nodes=input_nodes,
            transform=transform,
            transform_sampler_output=transform_sampler_output,
            filter_per_worker=filter_per_worker,
            **kwargs,
        )
        self._set_order(kwargs)
        check_graph_matches(self.data, sampler)
        count = sampler.num_nodes[self.input_data.input_type]
        check_mask(input_nodes, count)
        options.check_range(self.input_data.node, "input_nodes", count)

    def _request(self, places: Any) -> tuple[Any, ...]:
        return (inputs_at(self.input_data, self.dataset.__getitems__(places)),)

    def _sampled(self, places: Any) -> Any:
        return self.node_sampler.sample_from_nodes(*self._request(places))
