"""Sampled blocks as DGL's blocks, without a copy."""

from __future__ import annotations

from copy import copy
from functools import cache, lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from dgl import EID, NID, graph_index, heterograph_index, utils
from dgl._ffi.object_generic import convert_to_object
from dgl.frame import Column, Frame
from dgl.heterograph import DGLGraph

from pygsampler._batch.edge_values import NO_VALUES
from pygsampler._batch.repeated_seeds import index_with_repeats, rows_with_repeats, select_rows
from pygsampler.dgl.id_range import id_range
from pygsampler.dgl.sampled_block import DGLBlock

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pygsampler._batch.minibatch import MiniBatch
    from pygsampler._batch.subgraph import RootedSubgraph
    from pygsampler._graph.schema import EdgeType

__all__ = [
    "HopArrays",
    "all_formats",
    "block_from_types",
    "frames_on",
    "hop_arrays",
    "make_block",
    "make_subgraph",
    "subframe",
]


class HopArrays(NamedTuple):
    """The arrays of one block: CSC over local ids, original ids of nodes and edges.

    ``dst`` is a prefix of ``src``; row v of the CSC lists the sources of the edges into ``dst[v]``.
    All are on one device.
    """

    indptr: torch.Tensor
    indices: torch.Tensor
    src: torch.Tensor
    dst: torch.Tensor
    edge_ids: torch.Tensor
    edge_weights: torch.Tensor | None = None
    edge_values: Mapping[str, torch.Tensor] = NO_VALUES


def hop_arrays(batch: MiniBatch) -> list[HopArrays]:
    """The blocks of a batch, outermost hop first, with one last row for each seed.

    The engine samples a node that is twice among the seeds once. DGL's loaders hand out labels
    by ``output_nodes``, duplicates included, so the rows of such a batch are repeated here: equal
    seeds get equal rows, in every block, since a block's destinations must be a prefix of its
    sources, which are the destinations of the block before.
    """
    for place, block in enumerate(batch.blocks):
        if block.dst_offset:
            raise ValueError(
                f"sampler: expected destinations first among the sources, as blocks of DGL have "
                f"them, got blocks[{place}] with dst_offset {block.dst_offset}; "
                f"frontier='all' samples such blocks"
            )
    hops = [
        HopArrays(
            block.indptr,
            block.indices,
            block.src_nodes,
            block.dst_nodes,
            block.edge_ids,
            block.edge_weights,
            block.edge_values,
        )
        for block in batch.blocks
    ]
    seeds = batch.output_nodes
    # The last block may have more: columns of a program that are no seeds.
    distinct = batch._distinct_seeds()
    if len(seeds) != distinct:
        row_of_seed = batch.output_index.long()
        return [_repeat(hop, seeds, row_of_seed, distinct) for hop in hops]
    return hops


def _repeat(
    hop: HopArrays, seeds: torch.Tensor, row_of_seed: torch.Tensor, distinct: int
) -> HopArrays:
    """``hop`` with its first ``distinct`` nodes replaced by the seeds, which repeat some."""
    indptr, edges = select_rows(
        hop.indptr, rows_with_repeats(row_of_seed, distinct, hop.dst.numel())
    )
    place = index_with_repeats(row_of_seed, distinct, hop.src.numel())
    return HopArrays(
        indptr,
        place[hop.indices.long()[edges]].to(hop.indices.dtype),
        torch.cat([seeds.to(hop.src.dtype), hop.src[distinct:]]),
        torch.cat([seeds.to(hop.dst.dtype), hop.dst[distinct:]]),
        hop.edge_ids[edges],
        None if hop.edge_weights is None else hop.edge_weights[edges],
        {name: values[edges] for name, values in hop.edge_values.items()},
    )


def make_block(g: Any, hop: HopArrays, values: str = "edge_weights") -> Any:
    """Returns the DGLBlock of one hop over the arrays of ``hop``, as DGL's own samplers do.

    ``srcdata`` and ``dstdata`` hold ``dgl.NID``, ``edata`` holds ``dgl.EID``, and they also hold
    the features of ``g``, gathered when they are first read, and the sampler's values of each edge,
    by the name ``values`` and the names of a program. All ids have ``g``'s id type. The block and
    its features are on the device of ``hop``, wherever ``g`` has them.
    """
    made = _edge_values(g, hop, values)
    edge_ids = hop.edge_ids.to(hop.src.dtype)
    # dgl.create_block says the same in 0.2 ms instead of 0.01: it looks for the largest index,
    # sorts type names and builds the metagraph, for every block anew.
    relation = heterograph_index.create_unitgraph_from_csr(
        2,
        hop.src.numel(),
        hop.dst.numel(),
        hop.indptr,
        hop.indices,
        # DGL would take none for these, but its CPU kernels fail without: "Check notnull: edges".
        id_range(hop.indices.numel(), hop.indices),
        all_formats(),
        True,
    )
    index = heterograph_index.create_heterograph_from_relations(_metagraph(), [relation], None)
    frames = frames_on(g, hop.src.device)
    (of_nodes,), (of_edges,) = frames._node_frames, frames._edge_frames
    block = block_from_types(
        index,
        tuple(g.ntypes),
        tuple(g.canonical_etypes),
        [subframe(of_nodes, hop.src, NID), subframe(of_nodes, hop.dst, NID)],
        [subframe(of_edges, edge_ids, EID)],
    )
    for name, array in made.items():
        block.edata[name] = array
    return block


@cache
def all_formats() -> Any:
    """The formats that a block may have, as an object of DGL's engine.

    A Python list would become four objects in the engine, for each relation anew.
    """
    return convert_to_object(["coo", "csr", "csc"])


def subframe(frame: Any, ids: torch.Tensor, name: str) -> Any:
    """The features of some nodes or edges, gathered when they are read, and their ids by a name."""
    if frame._columns:
        made = frame.subframe(ids)
        made[name] = ids
        return made
    # The same in half the time.
    made = Frame(num_rows=ids.numel())
    made._columns[name] = Column.create(ids)
    made._initializers = frame._initializers
    made._default_initializer = frame._default_initializer
    return made


def block_from_types(
    index: Any,
    ntypes: tuple[str, ...],
    etypes: tuple[EdgeType, ...],
    node_frames: list[Any],
    edge_frames: list[Any],
) -> Any:
    """Returns a DGLBlock of a graph's types, which shares derived values with other such blocks.

    Derived values are computed for the first block. The constructor of DGL would ask its engine for
    the types of all ends, for each block anew. Lists of types, which DGL returns without a copy,
    are not shared: a change of ``block.canonical_etypes`` changes no other block.
    """
    known = _of_types(ntypes, etypes)
    if not known:
        made = DGLBlock(
            index, ([*ntypes], [*ntypes]), [kind[1] for kind in etypes], node_frames, edge_frames
        )
        own = "_graph", "_node_frames", "_edge_frames"
        about = {name: copy(each) for name, each in vars(made).items() if name not in own}
        known.append((about, [name for name, each in about.items() if isinstance(each, list)]))
        return made
    about, lists = known[0]
    made = DGLBlock.__new__(DGLBlock)
    attributes = made.__dict__
    attributes.update(about, _graph=index, _node_frames=node_frames, _edge_frames=edge_frames)
    for name in lists:
        attributes[name] = about[name][:]
    return made


@lru_cache(maxsize=64)
def _of_types(
    ntypes: tuple[str, ...], etypes: tuple[EdgeType, ...]
) -> list[tuple[dict[str, Any], list[str]]]:
    """The attributes of blocks of these types, and which are lists; empty before there is one."""
    return []


def make_subgraph(g: Any, rooted: RootedSubgraph, values: str) -> Any:
    """The DGLGraph of a subgraph, with the features of ``g`` and ids as ``make_block`` has them."""
    arrays = _edge_values(g, rooted, values)
    edge_ids = rooted.edge_ids.to(rooted.nodes.dtype)
    count = rooted.nodes.numel()
    consecutive_ids = id_range(rooted.indices.numel(), rooted.indices)
    index = heterograph_index.create_unitgraph_from_csr(
        1, count, count, rooted.indptr, rooted.indices, consecutive_ids, ["coo", "csr", "csc"], True
    )
    frames = frames_on(g, rooted.nodes.device)
    subgraph = DGLGraph(
        index,
        g.ntypes,
        g.etypes,
        utils.extract_node_subframes(frames, [rooted.nodes]),
        utils.extract_edge_subframes(frames, [edge_ids]),
    )
    for name, array in arrays.items():
        subgraph.edata[name] = array
    return subgraph


def _edge_values(g: Any, hop: HopArrays | RootedSubgraph, values: str) -> dict[str, torch.Tensor]:
    """Returns the sampler's values of each edge, by names that the graph does not have."""
    made = {} if hop.edge_weights is None else {values: hop.edge_weights}
    made.update(hop.edge_values)
    for name in made:
        if name in g.edata:
            raise ValueError(
                f"{name}: expected a graph without edata[{name!r}], where blocks have what was "
                "sampled, got one with it; rename the graph's own, or give edge_values= of "
                "pygsampler.dgl.Sampler"
            )
    return made


def frames_on(g: Any, device: torch.device) -> Any:
    """``g``, or its features on another GPU."""
    return _frames_on(g, device) if device.type != "cpu" and device != g.device else g


def _frames_on(g: Any, device: torch.device) -> SimpleNamespace:
    """The features of ``g``, to be moved to ``device`` when they are read.

    DGL's own sampler does so for ``use_uva=True``: features that are pinned are gathered by the
    GPU, and others on the host.
    """
    return SimpleNamespace(
        _node_frames=[frame.to(device) for frame in g._node_frames],
        _edge_frames=[frame.to(device) for frame in g._edge_frames],
    )


@cache
def _metagraph() -> Any:
    """Returns an edge from the source type to the destination type, the same for every block."""
    return graph_index.from_coo(2, [0], [1], True)
