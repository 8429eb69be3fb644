"""Blocks of heterographs: seeds, edges and blocks by DGL's types."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import dgl
import torch
from dgl import DGLError, graph_index, heterograph_index, ndarray, utils
from dgl.backend import to_dgl_nd
from torch.utils.dlpack import from_dlpack

from pygsampler._adapters.batch_number import BatchNumber
from pygsampler._adapters.engine_batch import worker_threads
from pygsampler._batch.minibatch import MiniBatch
from pygsampler._batch.repeated_seeds import index_with_repeats, rows_with_repeats, select_rows
from pygsampler._engine.checks import describe
from pygsampler._graph.graph import Graph, HeteroGraph
from pygsampler.dgl.block import (
    all_formats,
    block_from_types,
    frames_on,
    subframe,
)
from pygsampler.dgl.graph import check_place
from pygsampler.dgl.id_range import id_range
from pygsampler.dgl.options import as_ids
from pygsampler.dgl.sort_check import UnsortedWitness, find_unsorted

if TYPE_CHECKING:
    from pygsampler._batch.block import Block
    from pygsampler._graph.schema import EdgeType

__all__ = [
    "batch_to",
    "fanouts_by_type",
    "graph_of_types",
    "is_by_type",
    "reverse_types",
    "sample_hetero",
    "seeds_of_types",
    "subgraph_of_types",
]

Ids = dict[str, torch.Tensor]
Counts = dict[str, int]
T = TypeVar("T")


def is_by_type(fanouts: Any) -> bool:
    """True if some hop has other numbers of one edge type than of another."""
    return isinstance(fanouts, Sequence) and any(isinstance(hop, Mapping) for hop in fanouts)


def fanouts_by_type(g: Any, fanouts: Sequence[Any]) -> list[Any]:
    """``fanouts`` with the canonical types of ``g``; DGLError for a type that is missing."""
    return [
        _by_canonical_type(g, hop, f"fanouts[{i}]") if isinstance(hop, Mapping) else hop
        for i, hop in enumerate(fanouts)
    ]


def _by_canonical_type(g: Any, hop: Mapping[Any, Any], where: str) -> dict[Any, Any]:
    made = {g.to_canonical_etype(kind): number for kind, number in hop.items()}
    missing = [kind for kind in g.canonical_etypes if kind not in made]
    if missing:
        raise DGLError(f"{where}: expected a number for each edge type, got none for {missing[0]}")
    return made


def reverse_types(g: Any, value: T) -> T | dict[Any, Any]:
    """A mapping of edge types of ``g`` by those of ``dgl.reverse(g)``; what is none, as it is."""
    if not isinstance(value, Mapping):
        return value
    kinds = {kind: g.to_canonical_etype(kind) for kind in value}
    return {(dst, rel, src): value[kind] for kind, (src, rel, dst) in kinds.items()}


def batch_to(batch: tuple[Any, Any, Any], output_device: Any) -> tuple[Any, Any, Any]:
    """Moves the blocks, or the subgraph, and the input nodes of ``batch`` to ``output_device``."""
    if output_device is None:
        return batch
    nodes, seeds, blocks = batch
    device = _complete(torch.device(output_device))
    first = next(iter(nodes.values())) if isinstance(nodes, dict) else nodes
    if first.device == device:
        return batch
    if isinstance(nodes, dict):
        nodes = {kind: ids.to(device) for kind, ids in nodes.items()}
    else:
        nodes = nodes.to(device)
    if isinstance(blocks, list):
        return nodes, seeds, [block.to(device) for block in blocks]
    return nodes, seeds, blocks.to(device)


def _complete(device: torch.device) -> torch.device:
    """``device`` with the number that it has, as tensors say it: "cuda" is the current one."""
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return device


def sample_hetero(
    sampler: Any,
    identity: BatchNumber,
    g: Any,
    seed_nodes: Any,
    exclude_eids: Any,
    values: str | None = None,
) -> tuple[Any, Any, list[Any]]:
    """``(input_nodes, output_nodes, blocks)`` of a heterograph, where its seeds are.

    The sampler is a ``PGSampler``, a ``LaborSampler`` or a program over relations. Edges have their
    values as ``values``, by default as the sampler calls them.
    """
    seeds = seeds_of_types(g, seed_nodes)
    place = place_of(g, seeds)
    exclude = {} if exclude_eids is None else _excluded(g, exclude_eids)
    parts = [ids.long() for ids in exclude.values()]
    sizes = [len(ids) for ids in (*seeds.values(), *exclude.values())]
    others = torch.cat([torch.tensor(sizes, device="cpu"), *parts])
    epoch, batch = identity.number(
        torch.cat([ids.cpu().long() for ids in seeds.values()]), (b"types", others)
    )
    by, name = sampler.edge_array or ("mask", None)
    if name is not None and not any(name in g.edges[kind].data for kind in g.canonical_etypes):
        raise ValueError(
            f"{by}: expected the name of an array of some edge type of g, got {name!r}; {by}=None "
            "samples uniformly"
        )
    if sampler._names_relations:
        edges, nodes = sampler.array_names
        reads = _Reads(edges, nodes, sampler._row_names, True)
        # Edges of other relations are not sampled.
        exclude = {kind: ids for kind, ids in exclude.items() if kind in sampler.relations}
    else:
        reads = _Reads(() if name is None else (name,))
    job = sampler.launch(
        graph_of_types(g, reads, place),
        {kind: ids for kind, ids in seeds.items() if len(ids)},
        epoch=epoch,
        batch=batch,
        exclude={kind: ids for kind, ids in exclude.items() if len(ids)} or None,
        threads=worker_threads(),
    )
    made: Any = job.result()
    sources, blocks = _blocks(g, made, seeds, values or sampler.edge_values, reads.is_program)
    input_nodes = sources if len(g.ntypes) > 1 else next(iter(sources.values()))
    return input_nodes, seed_nodes, blocks


def subgraph_of_types(g: Any, nodes: Any, exclude_eids: Any) -> Any:
    """All edges of a heterograph among distinct nodes, but the excluded ones; where these are.

    Nodes stand in the order of ``nodes``. ValueError for one that is there twice.
    """
    by_type = nodes if isinstance(nodes, Mapping) else {g.ntypes[0]: nodes}
    for kind, ids in by_type.items():
        if len(ids.unique()) < len(ids):
            raise ValueError(
                f"seed_nodes[{kind!r}]: expected each node once for the subgraph of a "
                "heterograph, got one that is there twice"
            )
    place = next(iter(by_type.values())).device
    made = g.subgraph({kind: ids.to(g.device) for kind, ids in by_type.items()})
    excluded = {} if exclude_eids is None else _excluded(g, exclude_eids)
    for kind, ids in excluded.items():
        kept = made.edges[kind].data[dgl.EID]
        gone = torch.isin(kept.cpu().long(), ids).nonzero().flatten().to(g.device, g.idtype)
        if len(gone):
            # Ids stay, as other columns do; store_ids would write over those of all types.
            made = dgl.remove_edges(made, gone, etype=kind)
    return made.to(place)


def seeds_of_types(g: Any, seed_nodes: Any) -> Ids:
    """Returns the seeds of each type, in the order of ``g.ntypes``."""
    if not isinstance(seed_nodes, Mapping):
        if len(g.ntypes) > 1:
            raise TypeError(
                f"seed_nodes: expected a dict of node types to ids, got {describe(seed_nodes)}"
            )
        seed_nodes = {g.ntypes[0]: seed_nodes}
    for kind in seed_nodes:
        if kind not in g.ntypes:
            raise ValueError(f"seed_nodes: expected node types of g, got {kind!r}")
    none = torch.empty(0, dtype=g.idtype, device=g.device)
    seeds = {}
    for kind in g.ntypes:
        ids = as_ids(seed_nodes[kind], f"seed_nodes[{kind!r}]") if kind in seed_nodes else none
        # Ids of a list are moved to the device of ``g``.
        tensor = isinstance(seed_nodes.get(kind), torch.Tensor)
        seeds[kind] = ids if tensor else ids.to(g.device)
    return seeds


def place_of(g: Any, seeds: Ids) -> torch.device:
    """Returns the device that samples a batch of such seeds.

    It is the device of ``g``, or for a graph in page-locked host memory any GPU. Raises ValueError
    for seeds on another device.
    """
    places = {kind: ids.device for kind, ids in seeds.items() if len(ids)}
    for kind, place in places.items():
        check_place(g, str(g.device), place, f"seed_nodes[{kind!r}]")
    if len(set(places.values())) > 1:
        raise ValueError(f"seed_nodes: expected ids on one device, got {places}")
    return next(iter(places.values()), g.device)


def _excluded(g: Any, exclude: Any) -> dict[Any, torch.Tensor]:
    if not isinstance(exclude, Mapping):
        if len(g.etypes) > 1:
            raise TypeError(
                f"exclude_eids: expected a dict of edge types to ids, got {describe(exclude)}"
            )
        exclude = {g.canonical_etypes[0]: exclude}
    by_type = {g.to_canonical_etype(kind): ids for kind, ids in exclude.items()}
    made = {}
    for kind in g.canonical_etypes:
        if kind in by_type:
            ids = as_ids(by_type[kind], f"exclude_eids[{kind!r}]").cpu().long()
            # Ids that are no edges, such as -1, exclude nothing, as in DGL.
            made[kind] = ids[(ids >= 0) & (ids < g.num_edges(kind))]
    return made


class _Reads(NamedTuple):
    """Names of arrays of edges and of nodes, of which ``rows`` have a row for each node.

    ``is_program`` says who reads them.
    """

    edges: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    is_program: bool = False


class _CachedHeteroGraph(NamedTuple):
    """The graph of a heterograph's index, and of arrays as they were."""

    of: weakref.ref[Any]
    # By the type and the name.
    arrays: dict[Any, torch.Tensor]
    versions: tuple[int, ...]
    graph: Graph
    # The detectors of sorted rows, for the relations that share DGL's arrays.
    descents: list[UnsortedWitness]
    # On the GPUs that sample it, by their names, and whether they read the host's memory.
    placed: dict[tuple[str, bool], Graph]

    def fits(self, index: Any, arrays: dict[Any, torch.Tensor]) -> bool:
        """True if this is of that index, and of its rows and those arrays as they are now."""
        same = self.of() is index and self.arrays.keys() == arrays.keys()
        return (
            same
            and all(self.arrays[kind] is array for kind, array in arrays.items())
            and self.versions == _versions(arrays)
            and not any(descent.is_sorted for descent in self.descents)
        )


_graphs: dict[tuple[int, _Reads], _CachedHeteroGraph] = {}
"""By the id of DGL's graph index, which nothing changes in place, and what is read."""


def graph_of_types(g: Any, reads: _Reads, place: torch.device | None = None) -> Graph:
    """Returns ``g`` with the arrays of those names, where types have them, on the CPU or a GPU.

    The result is cached as long as neither changes. For a ``g`` on a GPU the CSCs are copied to the
    host, and from there to the GPU: tables of weights are built, and edges to leave out are found,
    on the host.
    """
    taken = _cached_graph(g, reads)
    if place is None or place.type == "cpu":
        return taken.graph
    key = str(place), g.device.type == "cpu"
    there = taken.placed.get(key)
    if there is None:
        there = taken.graph.pin(key[0]) if key[1] else taken.graph.to(key[0])
        taken.placed[key] = there
    return there


def _cached_graph(g: Any, reads: _Reads) -> _CachedHeteroGraph:
    of_edges = _present(g.edges, g.canonical_etypes, reads.edges)
    of_nodes = _present(g.nodes, g.ntypes, reads.nodes)
    arrays = of_edges | of_nodes
    index = g._graph
    key = id(index), reads
    known = _graphs.get(key)
    if known is not None and known.fits(index, arrays):
        return known
    rows = {kind: _csc(g, kind) for kind in g.canonical_etypes}
    found = (find_unsorted(*arrays[:2]) for arrays in rows.values())
    made = HeteroGraph(
        rows,
        {kind: int(g.num_nodes(kind)) for kind in g.ntypes},
        edge_data=_arrays_by_type(of_edges, ()),
        node_data=_arrays_by_type(of_nodes, reads.rows),
    )
    end = weakref.ref(index, lambda _: _forget(key))
    descents = [descent for descent in found if descent is not None]
    _graphs[key] = _CachedHeteroGraph(end, arrays, _versions(arrays), made, descents, {})
    return _graphs[key]


def _present(views: Any, kinds: Sequence[Any], names: Sequence[str]) -> dict[Any, torch.Tensor]:
    """Returns the arrays of these names that types have, by the type and the name."""
    if not names:
        return {}
    data = {kind: views[kind].data for kind in kinds}
    return {(kind, name): of[name] for kind, of in data.items() for name in names if name in of}


def _arrays_by_type(
    arrays: dict[Any, torch.Tensor], row_names: Sequence[str]
) -> dict[Any, dict[str, torch.Tensor]]:
    """Returns arrays of some types by their names, of values or, in ``row_names``, of rows."""
    result: dict[Any, dict[str, torch.Tensor]] = {}
    for (kind, name), array in arrays.items():
        values = array.detach()
        values = values.cpu().contiguous() if name in row_names else _flat(values)
        result.setdefault(kind, {})[name] = values
    return result


def _versions(arrays: dict[Any, torch.Tensor]) -> tuple[int, ...]:
    return tuple(array._version for array in arrays.values())


def _forget(key: Any, graphs: dict[Any, _CachedHeteroGraph] = _graphs) -> None:
    # The default argument outlives the module's globals.
    graphs.pop(key, None)


def _flat(array: torch.Tensor) -> torch.Tensor:
    return array.cpu().reshape(-1) if array.dim() == 2 and array.shape[1] == 1 else array.cpu()


def _csc(g: Any, kind: Any) -> tuple[torch.Tensor, ...]:
    if "csc" not in {f for formats in g.formats().values() for f in formats}:
        g = g.formats("csc")
    indptr, indices, ids = (array.cpu() for array in g.adj_tensors("csc", etype=kind))
    # DGL leaves the ids out when the edges are numbered in CSC order.
    return (indptr, indices, ids) if len(ids) == len(indices) else (indptr, indices)


def _blocks(
    g: Any, batch: MiniBatch, seeds: Ids, values_as: str, has_others: bool
) -> tuple[Ids, list[Any]]:
    """The nodes of each type that the outermost hop needs, and DGL's blocks.

    Values of edges are called ``values_as``, and those that have names of their own have these. It
    ``has_others`` where the last block may have destinations that are no seeds.
    """
    ntypes, etypes = tuple(g.ntypes), tuple(g.canonical_etypes)
    source = batch._source
    places = {kind: place for place, kind in enumerate(source.schema.node_types)}
    counts = {kind: source.node_counts(places[kind]) for kind in ntypes}
    nodes = {kind: batch.input_nodes[kind].torch() for kind in ntypes}
    distinct = {kind: counts[kind][0] for kind in ntypes}
    if has_others:
        distinct = {kind: len(torch.unique(of)) for kind, of in seeds.items()}
    repeated = {kind for kind in ntypes if len(seeds[kind]) != distinct[kind]}
    row_of = {kind: batch.output_index[kind].torch().long() for kind in repeated}
    ids = {
        kind: torch.cat([seeds[kind].to(ids.dtype), ids[distinct[kind] :]])
        if kind in repeated
        else ids
        for kind, ids in nodes.items()
    }
    on_host, like, outermost = batch.device == "cpu", nodes[ntypes[0]], None
    made, frames = [], frames_on(g, like.device)
    for hop, relations in enumerate(batch.blocks):
        reached = len(batch.blocks) - hop
        ends = {kind: (counts[kind][reached - 1], counts[kind][reached]) for kind in ntypes}
        csc, edge_ids = [], []
        weights: dict[Any, dict[str, torch.Tensor]] = {}
        for kind in etypes:
            block, (src, _, dst) = relations[kind], kind
            if on_host:
                edges = from_dlpack(source.capsule(block._place, "edge_ids"))
            else:
                edges = block.edge_ids.torch()
            factors = {name: of.torch() for name, of in block.edge_values.items()}
            if block.edge_weights is not None:
                factors[values_as] = block.edge_weights.torch()
            if repeated.isdisjoint((src, dst)):
                csc.append((_ndarray(block, "indptr"), _ndarray(block, "indices")))
            else:
                indptr, indices = block.indptr.torch(), block.indices.torch()
                if dst in repeated:
                    rows = rows_with_repeats(row_of[dst], distinct[dst], ends[dst][0])
                    indptr, chosen = select_rows(indptr, rows)
                    indices, edges = indices[chosen], edges[chosen]
                    factors = {name: of[chosen] for name, of in factors.items()}
                if src in repeated:
                    place = index_with_repeats(row_of[src], distinct[src], ends[src][1])
                    indices = place[indices.long()].to(indptr.dtype)
                csc.append((to_dgl_nd(indptr), to_dgl_nd(indices)))
            edge_ids.append(edges.to(g.idtype))
            weights[kind] = factors
        more = {kind: len(seeds[kind]) - distinct[kind] for kind in ntypes}
        num_dst = {kind: ends[kind][0] + more[kind] for kind in ntypes}
        num_src = {kind: ends[kind][1] + more[kind] for kind in ntypes}
        sources = {kind: ids[kind][: num_src[kind]] for kind in ntypes}
        outermost = sources if outermost is None else outermost
        # Sources and destinations of each type have the same features.
        of_nodes = [
            subframe(frame, found[kind], dgl.NID)
            for found in (sources, {kind: ids[kind][: num_dst[kind]] for kind in ntypes})
            for kind, frame in zip(ntypes, frames._node_frames, strict=True)
        ]
        of_edges = [
            subframe(frame, each, dgl.EID)
            for frame, each in zip(frames._edge_frames, edge_ids, strict=True)
        ]
        num_edges = [len(each) for each in edge_ids]
        index = _index(ntypes, etypes, csc, num_edges, num_src, num_dst, like)
        block = block_from_types(index, ntypes, etypes, of_nodes, of_edges)
        for kind, factors in weights.items():
            block.edges[kind].data.update(factors)
        made.append(block)
    assert outermost is not None
    return outermost, made


def _ndarray(block: Block, name: str) -> Any:
    """An array of a block as DGL's. By torch's it would take twice as long."""
    source: Any = block._source
    if source._device >= 0:
        return to_dgl_nd(getattr(block, name).torch())
    return ndarray.from_dlpack(source.capsule(block._place, name))


def _index(
    ntypes: tuple[str, ...],
    etypes: tuple[EdgeType, ...],
    csc: list[tuple[Any, Any]],
    num_edges: Sequence[int],
    num_src: Counts,
    num_dst: Counts,
    like: torch.Tensor,
) -> Any:
    """Returns DGL's index of a block of such relations, whose arrays are DGL's, as ``like`` is.

    The function ``dgl.create_block`` would search the largest index of each relation.
    """
    formats, relations = all_formats(), []
    for (src, _, dst), (indptr, indices), count in zip(etypes, csc, num_edges, strict=True):
        ids = to_dgl_nd(id_range(count, like))
        about = 2, num_src[src], num_dst[dst], indptr, indices, ids, formats, True
        relations.append(heterograph_index._CAPI_DGLHeteroCreateUnitGraphFromCSR(*about))
    sizes = [*(num_src[kind] for kind in ntypes), *(num_dst[kind] for kind in ntypes)]
    return heterograph_index.create_heterograph_from_relations(
        _metagraph(ntypes, etypes), relations, utils.toindex(sizes, "int64")
    )


@cache
def _metagraph(ntypes: tuple[str, ...], etypes: tuple[EdgeType, ...]) -> Any:
    """The types of a block: of the sources, then of the destinations."""
    place = {kind: i for i, kind in enumerate(ntypes)}
    src, dst = ([place[kind[end]] for kind in etypes] for end in (0, 2))
    count = len(ntypes)
    return graph_index.from_coo(2 * count, src, [count + i for i in dst], True)
