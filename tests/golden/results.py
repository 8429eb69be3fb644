"""Arrays of results by fixed names, and digests of them.

``_FIELDS`` has one function for each kind of result. A digest reads the names that these functions
give, so that a class or an attribute that gets another name changes a line here, and no digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from pygsampler._batch.block import Block
from pygsampler._batch.contexts import Contexts
from pygsampler._batch.minibatch import MiniBatch
from pygsampler._batch.subgraph import Subgraph
from pygsampler.walks.result import Walks
from pygsampler.walks.visits import Visits

# The digits of the first 59 digests, which are SHA-256; the others are BLAKE2b.
SHA256 = 16
# Names that only results in torch tensors have: the edges once more, as layers of torch take them.
ONLY_TORCH = ("edge_index", "dst_index")
# Arrays of integers that are no ids: they have 32 bits in every graph.
NO_IDS = ("cells", "counts", "hops", "lengths", "parents", "slots", "types")
PYG_ATTRIBUTES = (
    *("n_id", "e_id", "edge_index", "input_id", "batch_size", "batch", "ptr", "root_n_id"),
    *("num_nodes", "num_sampled_nodes", "num_sampled_edges", "output_index", "seed_time"),
    *("edge_label", "edge_label_index", "src_index", "dst_pos_index", "dst_neg_index"),
    *("x", "y", "w", "time", "edge_weights", "node_norm", "edge_norm"),
)


def block(block: Any) -> dict[str, Any]:
    fields = {
        "dst_nodes": block.dst_nodes,
        "dst_offset": block.dst_offset,
        "edge_data": block.edge_data,
        "edge_ids": block.edge_ids,
        "edge_weights": block.edge_weights,
        "indices": block.indices,
        "indptr": block.indptr,
        "num_dst_nodes": block.num_dst_nodes,
        "num_edges": block.num_edges,
        "num_src_nodes": block.num_src_nodes,
        "src_nodes": block.src_nodes,
    }
    if block.form == "torch":
        fields |= {"edge_index": block.edge_index, "dst_index": block.dst_index}
        fields["features"] = block.features
    return fields


def minibatch(batch: Any) -> dict[str, Any]:
    fields = {
        "batch": batch.batch,
        "blocks": batch.blocks,
        "epoch": batch.epoch,
        "extra": batch.extra,
        "input_nodes": batch.input_nodes,
        "num_edges": batch.num_edges,
        "output_index": batch.output_index,
        "output_nodes": batch.output_nodes,
        "trees": batch.subgraph_ids,
    }
    if batch.form == "torch":
        fields["features"] = batch.features
    if not batch.is_homogeneous:
        fields |= {
            "nodes": batch.input_nodes,
            "num_sampled_edges": batch.num_sampled_edges,
            "num_sampled_nodes": batch.num_sampled_nodes,
        }
    return fields


def subgraph(batch: Any) -> dict[str, Any]:
    fields = {
        **minibatch(batch),
        "edge_data": batch.edge_data,
        "edge_ids": batch.edge_ids,
        "indices": batch.indices,
        "indptr": batch.indptr,
        "nodes": batch.nodes,
        "num_nodes": batch.num_nodes,
        "root_index": batch.root_index,
    }
    if batch.form == "torch":
        fields["edge_index"] = batch.edge_index
    return fields


class OverRelations(NamedTuple):
    """A batch of a program, by the types of the relations that the program names."""

    batch: Any
    relations: tuple[Any, ...]


class EdgesOfRelation(NamedTuple):
    """A block of such a batch."""

    block: Any


def over_relations(result: Any) -> dict[str, Any]:
    batch, relations = result
    ends = {kind for src, _, dst in relations for kind in (src, dst)}
    found = {kind: np.cumsum(batch.num_sampled_nodes[kind]).tolist() for kind in ends}

    def nodes(arrays: Any) -> dict[str, Any]:
        return {kind: _as_numpy(arrays[kind]).astype(np.int64) for kind in ends}

    return {
        "batch": batch.batch,
        "blocks": [
            {kind: EdgesOfRelation(hop[kind]) for kind in relations} for hop in batch.blocks
        ],
        "epoch": batch.epoch,
        "extra": batch.extra,
        "nodes": nodes(batch.input_nodes),
        "num_dst_nodes": [
            {kind: found[kind][hop] for kind in ends} for hop in reversed(range(len(batch.blocks)))
        ],
        "output_index": nodes(batch.output_index),
        "output_nodes": nodes(batch.output_nodes),
    }


def contexts(contexts: Any) -> dict[str, Any]:
    names = ("batch", "cells", "epoch", "hops", "lengths", "mask", "nodes", "parents", "types")
    return {name: getattr(contexts, name) for name in names}


def walks(walks: Any) -> dict[str, Any]:
    return {
        "batch": walks.batch,
        "edge_ids": _if_there(walks, "edge_ids"),
        "epoch": walks.epoch,
        "length": walks.length,
        "lengths": walks.lengths,
        "nodes": walks.nodes,
        "num_edges": walks.num_edges,
        "seed": walks.seed,
        "slots": walks.slots,
        "walks_per_seed": walks.walks_per_seed,
    }


class VisitsOfType(NamedTuple):
    """The neighbors of one type that `RestartNeighbors` finds."""

    nodes: Any
    counts: Any


def visits(visits: Any) -> dict[str, Any]:
    if isinstance(visits.nodes, Mapping) and visits.form == "torch":
        return visits_by_type(visits)
    return {
        "batch": visits.batch,
        "counts": _only(visits.counts),
        "epoch": visits.epoch,
        "nodes": _only(visits.nodes),
        "num_edges": visits.num_edges,
        "output_nodes": _only(visits.output_nodes),
    }


def _only(values: Any) -> Any:
    """Returns the values of the one type that a result along a metapath has."""
    return next(iter(values.values())) if isinstance(values, Mapping) else values


def steps(samples: Any) -> dict[str, Any]:
    return {
        "batch": samples.batch,
        "edge_ids": _if_there(samples, "edge_ids"),
        "epoch": samples.epoch,
        "num_edges": samples.num_edges,
        "seed": samples.seed,
        "seeds": samples.seeds,
        "steps": samples.steps,
        "widths": samples.widths,
    }


def visits_of_type(visits: Any) -> dict[str, Any]:
    return {"counts": visits.counts, "nodes": visits.nodes}


def visits_by_type(visits: Any) -> dict[str, Any]:
    return {
        "batch": visits.batch,
        "epoch": visits.epoch,
        "input_nodes": visits.input_nodes,
        "num_edges": visits.num_edges,
        "output_index": visits.output_index,
        "output_nodes": visits.output_nodes,
        "visits": {
            kind: VisitsOfType(visits.nodes[kind], visits.counts[kind]) for kind in visits.nodes
        },
    }


def edges_of_relation(edges: Any) -> dict[str, Any]:
    (block,) = edges
    src, dst = (_as_numpy(ends).astype(np.int64) for ends in block.coo())
    return {
        "dst": dst,
        "edge_ids": _as_numpy(block.edge_ids).astype(np.int64),
        "named": block.edge_values,
        "src": src,
        "values": block.edge_weights,
    }


def link_batch(batch: Any) -> dict[str, Any]:
    return {
        "dst_neg_index": batch.dst_neg_index,
        "dst_pos_index": batch.dst_pos_index,
        "edge_label": batch.edge_label,
        "edge_label_index": batch.edge_label_index,
        "input_id": batch.input_id,
        "sampled": batch.minibatch,
        "src_index": batch.src_index,
    }


def dgl_graph(graph: Any) -> dict[str, Any]:
    """Edges and frames of a block, or another graph, of DGL."""
    return {
        "edges": {str(kind): graph.edges(etype=kind) for kind in graph.canonical_etypes},
        "edge_data": {str(kind): dict(graph.edges[kind].data) for kind in graph.canonical_etypes},
        "source_data": {kind: dict(graph.srcnodes[kind].data) for kind in graph.srctypes},
        "target_data": {kind: dict(graph.dstnodes[kind].data) for kind in graph.dsttypes},
    }


def pyg_data(data: Any) -> dict[str, Any]:
    """The attributes of each store of PyG's Data and HeteroData."""
    return {
        str(getattr(store, "_key", None)): {
            name: store[name] for name in PYG_ATTRIBUTES if name in store
        }
        for store in data.stores
    }


def _if_there(result: Any, name: str) -> Any:
    """Returns an array that only samplers with an option make; None without it."""
    try:
        return getattr(result, name)
    except (AttributeError, ValueError):
        return None


# The first class of a result's bases that is here decides.
_FIELDS: dict[type, Callable[[Any], dict[str, Any]]] = {
    Block: block,
    MiniBatch: minibatch,
    Subgraph: subgraph,
    OverRelations: over_relations,
    EdgesOfRelation: edges_of_relation,
    Contexts: contexts,
    Walks: walks,
    Visits: visits,
    VisitsOfType: visits_of_type,
}
if find_spec("pygsampler.research") is not None:
    from pygsampler.research import StepSamples

    _FIELDS |= {StepSamples: steps}
if find_spec("torch") is not None:
    from pygsampler.torch import LinkBatch

    _FIELDS |= {LinkBatch: link_batch}
# By name, since their packages may be missing.
_FOREIGN: dict[str, Callable[[Any], dict[str, Any]]] = {
    "DGLGraph": dgl_graph,
    "Data": pyg_data,
    "HeteroData": pyg_data,
}


def arrays(value: Any, name: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """Yields all arrays of a result with the names of the fields, keys and places before them."""
    fields = next(
        (
            function
            for kind in type(value).__mro__
            if (function := _FIELDS.get(kind) or _FOREIGN.get(kind.__name__))
        ),
        None,
    )
    if fields is not None:
        for key, item in sorted(fields(value).items()):
            yield from arrays(item, f"{name}.{key}")
    elif isinstance(value, Mapping):
        for key in sorted(value, key=str):
            yield from arrays(value[key], f"{name}[{key}]")
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            yield from arrays(item, f"{name}[{place}]")
    elif value is not None and not isinstance(value, str):
        yield name, _as_numpy(value)


def _as_numpy(value: Any) -> np.ndarray:
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, bool | int):
        return np.array([value], dtype=np.int64)
    if type(value).__module__.startswith("pyarrow"):
        return np.asarray(value.to_numpy(zero_copy_only=False))
    if hasattr(value, "cpu"):
        value = value.cpu()
    if hasattr(value, "detach"):
        value = value.detach()
        if str(value.dtype) == "torch.bfloat16":  # NumPy has no such numbers
            import torch

            value = value.view(torch.int16)
    return np.from_dlpack(value)


def digest(
    results: Any, length: int = 24, leave_out: tuple[str, ...] = (), widen: bool = False
) -> str:
    """Returns a digest of the names, dtypes, shapes and bytes of all arrays of some results.

    ``length`` is the number of its digits, ``leave_out`` has names of arrays, and ``widen`` takes
    ids of 32 bits as if they had 64.
    """
    total = hashlib.sha256() if length == SHA256 else hashlib.blake2b(digest_size=length // 2)
    count = 0
    for name, array in arrays(results):
        field = name.rpartition(".")[2]
        if field in leave_out:
            continue
        if widen and array.dtype == np.int32 and field not in NO_IDS:
            array = array.astype(np.int64)
        total.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        total.update(np.ascontiguousarray(array).tobytes())
        count += array.size
    assert count > 100, f"expected results to have arrays, got {count} numbers"
    return total.hexdigest()[:length]
