"""LABOR's blocks of heterographs: each relation by itself, with one number for each node."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dgl
import torch
from dgl import utils
from torch.utils.data import get_worker_info

from pygsampler import sampler as _core
from pygsampler._arrays.vertices import check_vertices
from pygsampler._core.checks import describe
from pygsampler._core.limits import MAX_BATCH
from pygsampler._loading.batch_number import BatchNumber
from pygsampler.converted import as_torch
from pygsampler.dgl.block import hops_of
from pygsampler.dgl.hetero import fanouts_by_type, graph_of_types, seeds_of_types

__all__ = ["sample_labor"]

# Source nodes, destination nodes and ids of a relation's edges, and their weights.
Edges = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]


def sample_labor(
    made: Callable[[int, bool], _core.Sampler[Any]],
    fanouts: Sequence[Any],
    prob: str | None,
    layer_dependency: bool,
    identity: BatchNumber,
    g: Any,
    seed_nodes: Any,
) -> tuple[Any, Any, list[Any]]:
    """``(input_nodes, output_nodes, blocks)`` of a heterograph on the CPU.

    ``made(fanout, weighted)`` is the sampler of one hop of a relation. All relations of a hop draw
    by the same epoch and batch, hence by the same number for a node: DGL has one seed for them too.
    """
    if g.device.type != "cpu":
        raise NotImplementedError(
            f"g: expected a heterograph on the CPU, got one on {g.device}; g.cpu() is sampled there"
        )
    if prob is not None and not any(prob in g.edges[kind].data for kind in g.canonical_etypes):
        raise ValueError(f"prob: expected an edge type of g with data[{prob!r}], got none")
    frontier = seeds_of_types(g, seed_nodes)
    for kind, ids in frontier.items():
        check_vertices(ids, f"seed_nodes[{kind!r}]", int(g.num_nodes(kind)))
        if len(torch.unique(ids)) != len(ids):
            raise ValueError(f"seed_nodes[{kind!r}]: expected ids that are all different")
    sizes = torch.tensor([len(ids) for ids in frontier.values()])
    joined = torch.cat([ids.long() for ids in frontier.values()])
    epoch, batch = identity.of(joined, (b"types", sizes))
    graph = graph_of_types(g, prob)
    by_hop = fanouts_by_type(g, fanouts)
    blocks: list[Any] = []
    for hop, fanout in enumerate(reversed(by_hop)):
        number = batch if layer_dependency else _of_hop(batch, hop)
        jobs = {}
        for kind in g.canonical_etypes:
            if len(frontier[kind[2]]):
                n = fanout[kind] if isinstance(fanout, Mapping) else fanout
                weighted = prob is not None and prob in g.edges[kind].data
                jobs[kind] = made(n, weighted).launch(
                    graph[kind],
                    frontier[kind[2]],
                    epoch=epoch,
                    batch=number,
                    threads=0 if get_worker_info() is None else 1,
                    into="torch",
                    beside=True,
                )
        edges = {kind: _edges(job.result(), frontier[kind[2]]) for kind, job in jobs.items()}
        blocks.insert(0, _block(g, edges, frontier))
        frontier = {kind: blocks[0].srcnodes[kind].data[dgl.NID] for kind in g.ntypes}
    input_nodes: Any = frontier if len(g.ntypes) > 1 else frontier[g.ntypes[0]]
    return input_nodes, seed_nodes, blocks


def _of_hop(batch: int, hop: int) -> int:
    """The number of a hop's batches: of each hop another, of a batch always the same."""
    text = f"{batch},{hop}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") & MAX_BATCH


def _edges(batch: Any, targets: torch.Tensor) -> Edges:
    """The edges of a batch of one hop, whose rows are the targets, in original ids."""
    (hop,) = hops_of(as_torch(batch))
    assert len(hop.dst) == len(targets), describe(hop.dst)
    sources = hop.src[hop.indices.long()]
    into = targets.repeat_interleave(hop.indptr.diff().long())
    return sources, into, hop.edge_ids, hop.edge_weights


def _block(g: Any, edges: Mapping[Any, Edges], frontier: Mapping[str, torch.Tensor]) -> Any:
    """DGL's block of these edges, with the features of ``g``."""
    none = torch.empty(0, dtype=g.idtype)
    drawn = dgl.heterograph(
        {
            kind: tuple(ends.to(g.idtype) for ends in edges[kind][:2])
            if kind in edges
            else (none, none)
            for kind in g.canonical_etypes
        },
        num_nodes_dict={kind: int(g.num_nodes(kind)) for kind in g.ntypes},
        idtype=g.idtype,
    )
    block = dgl.to_block(drawn, {kind: ids.to(g.idtype) for kind, ids in frontier.items()})
    kept = {kind: block.edges[kind].data[dgl.EID].long() for kind in g.canonical_etypes}
    ids = [
        edges[kind][2][kept[kind]].to(g.idtype) if kind in edges else none
        for kind in g.canonical_etypes
    ]
    frames = utils.extract_node_subframes_for_block(
        g,
        [block.srcnodes[kind].data[dgl.NID] for kind in g.ntypes],
        [block.dstnodes[kind].data[dgl.NID] for kind in g.ntypes],
    )
    utils.set_new_frames(block, node_frames=frames)
    utils.set_new_frames(block, edge_frames=utils.extract_edge_subframes(g, ids))
    for kind, (_, _, _, values) in edges.items():
        if values is not None:
            block.edges[kind].data["edge_weights"] = values[kept[kind]]
    return block
