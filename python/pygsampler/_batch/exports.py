"""Batches as the graphs of other libraries: methods of batches of every kind of arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pygsampler._arrays.tensor_frames import is_tensor_frame
from pygsampler._graph import dgl_conversion, pyg_conversion
from pygsampler._graph.networkx_conversion import add_edges, add_nodes, networkx
from pygsampler._graph.scipy_conversion import block_matrix


class Exports:
    """The conversions of a batch, with the features that a loader has attached."""

    __slots__ = ()

    # False where the edges of a batch are of no hops.
    _has_hops: ClassVar[bool] = True

    if TYPE_CHECKING:
        blocks: Any
        input_nodes: Any
        output_index: Any
        is_homogeneous: Any

    def to_networkx(self) -> Any:
        """The sampled edges of all hops as a ``networkx.MultiDiGraph``.

        Nodes are called by their original ids, and are all of ``input_nodes``. Edges have their
        original id as "edge_id", and "hop", which is 0 for the edges into the seeds. In a
        heterogeneous graph nodes are (type, original id) and have "node_type", and edges have
        "edge_type".
        """
        if not self.is_homogeneous:
            return _hetero_to_networkx(self)
        made = networkx().MultiDiGraph()
        names = add_nodes(made, as_numpy(self.input_nodes).tolist(), {})
        for hop, block in enumerate(reversed(self.blocks)):
            src, dst = _coo(block)
            values = {"hop": [hop] * len(src)}
            add_edges(made, (names, names), (src, dst, as_numpy(block.edge_ids)), values)
        return made

    def to_scipy(self) -> Any:
        """The blocks as sparse arrays of SciPy, a tuple of ``csc_array``, the outermost first.

        An entry [source, destination] of local ids is an edge, whose value is its factor
        (``edge_weights``), or 1 without factors. Destination i of a block is column
        ``dst_offset + i``. In a heterogeneous graph a mapping of edge types to ``csc_array`` for
        each hop.
        """
        if not self.is_homogeneous:
            return tuple({kind: _matrix(b) for kind, b in hop.items()} for hop in self.blocks)
        return tuple(map(_matrix, self.blocks))

    def to_dgl(self) -> Any:
        """The blocks as a list of ``dgl.DGLBlock``, the outermost first, for layers of DGL.

        Nodes and edges have their original ids as ``dgl.NID`` and ``dgl.EID``, the sources of the
        first block have the features that a loader has read, but for frames, and edges have theirs.
        The last block has a row for each distinct seed, as ``output_index`` says.

        Raises
        ------
        ValueError
            For a batch of ``frontier="new"``, whose blocks are none of DGL's.
        """
        batch: Any = _torch(self)
        if not self.is_homogeneous:
            return _hetero_to_dgl(batch)
        nid, eid = dgl_conversion.id_names()
        made = []
        for place, block in enumerate(batch.blocks):
            _check_offset(block, place)
            csc = block.indptr, block.indices
            of_dgl = dgl_conversion.to_block({None: csc}, block.num_src_nodes, block.num_dst_nodes)
            of_dgl.srcdata[nid], of_dgl.dstdata[nid] = block.src_nodes, block.dst_nodes
            of_dgl.edata[eid] = block.edge_ids
            of_dgl.edata.update({**block.edge_data, **block.features})
            made.append(of_dgl)
        if made:
            made[0].srcdata.update(_rows_of_nodes(batch.features))
        return made

    def to_pyg(self) -> Any:
        """The batch as a ``torch_geometric.data.Data``, as loaders of PyG give it.

        ``edge_index`` has the edges of all hops in local ids, the seeds' hop first, ``n_id`` and
        ``e_id`` the original ids of nodes and edges; the first ``batch_size`` nodes are the
        distinct seeds, and ``output_index`` says which is whose. ``num_sampled_nodes`` and
        ``num_sampled_edges`` are lists of int, the seeds' first, except of subgraphs and of static
        batches; with ``disjoint`` ``batch`` is the subgraph of each node. Values of edges are
        ``edge_weight``, 1 in blocks without any; those that a program returned by other names have
        these names. Features that
        a loader has read are attributes by their names, and its labels are ``y``, a row for each
        seed. With ``frontier="all"`` nodes are expanded anew in each hop, so that an edge may be
        there several times; ``frontier="new"`` samples as PyG does.

        In a heterogeneous graph it is a ``HeteroData``, with these attributes by type.

        Raises
        ------
        ValueError
            For values of edges that some blocks alone have.
        """
        import torch

        batch: Any = _torch(self)
        if not self.is_homogeneous:
            return _hetero_to_pyg(batch)
        data = pyg_conversion.new("Data")
        blocks = batch.blocks[::-1]
        data.num_nodes = len(batch.input_nodes)
        none = batch.input_nodes.new_empty(0)
        data.edge_index = torch.cat([none.expand(2, 0).long(), *(b.edge_index for b in blocks)], 1)
        data.n_id, data.e_id = batch.input_nodes, torch.cat([none, *(b.edge_ids for b in blocks)])
        data.output_index = batch.output_index
        data.batch_size = batch._distinct_seeds()
        counts = _hop_counts(batch)
        if counts is not None:
            data.num_sampled_nodes, data.num_sampled_edges = counts
        if batch.subgraph_ids is not None:
            data.batch = batch.subgraph_ids
        for name, rows in batch.features.items():
            setattr(data, name, rows)
        _put_edges(data, blocks)
        return data


class SubgraphExports(Exports):
    """The conversions of a sampled subgraph."""

    __slots__ = ()

    _has_hops = False

    def to_scipy(self) -> Any:
        """Returns the subgraph as a ``csc_array`` of SciPy, shape [V, V].

        An entry [source, destination], positions in ``nodes``, is an edge. Its value is the factor
        of the edge, or 1 without factors.
        """
        return _matrix(self.blocks[0])

    def to_dgl(self) -> Any:
        """Returns the subgraph as a ``dgl.DGLGraph`` with the features that a loader has read.

        Original ids are ``dgl.NID`` and ``dgl.EID``.
        """
        batch: Any = _torch(self)
        block = batch.blocks[0]
        parts = block.indptr, block.indices, batch.input_nodes, block.edge_ids
        made = dgl_conversion.to_subgraph(*parts)
        made.edata.update({**block.edge_data, **block.features})
        made.ndata.update(_rows_of_nodes(batch.features))
        return made


def _hetero_to_networkx(batch: Any) -> Any:
    """Returns the sampled edges of all hops as a ``networkx.MultiDiGraph``."""
    made, names = networkx().MultiDiGraph(), {}
    for kind, ids in batch.input_nodes.items():
        own = [(kind, node) for node in as_numpy(ids).tolist()]
        names[kind] = add_nodes(made, own, {"node_type": [kind] * len(own)})
    for hop, blocks in enumerate(reversed(batch.blocks)):
        for kind, block in blocks.items():
            src, dst = _coo(block)
            values = {"edge_type": [kind] * len(src), "hop": [hop] * len(src)}
            ends = names[kind[0]], names[kind[2]]
            add_edges(made, ends, (src, dst, as_numpy(block.edge_ids)), values)
    return made


def _hetero_to_dgl(batch: Any) -> Any:
    """Returns the hops of a batch in torch tensors as ``dgl.DGLBlock``, the outermost first."""
    nid, eid = dgl_conversion.id_names()
    made = []
    # A static batch does not know them, and some blocks have more rows than they tell.
    known: Mapping[str, list[int]] = getattr(batch, "num_sampled_nodes", {})
    for place, blocks in enumerate(batch.blocks):
        # All node types, since a type without edges in this hop has its nodes on both sides, too.
        hops = len(batch.blocks) - place
        src, dst = (dict.fromkeys(batch.input_nodes, 0) for _ in range(2))
        for kind, found in known.items():
            dst[kind], src[kind] = sum(found[:hops]), sum(found[: hops + 1])
        for kind, block in blocks.items():
            _check_offset(block, place)
            src[kind[0]] = max(src[kind[0]], block.num_src_nodes)
            dst[kind[2]] = max(dst[kind[2]], block.num_dst_nodes)
        src = {kind: max(count, dst[kind]) for kind, count in src.items()}
        csc = {
            kind: (_of_rows(block.indptr, dst[kind[2]]), block.indices)
            for kind, block in blocks.items()
        }
        of_dgl = dgl_conversion.to_block(csc, src, dst)
        for kind, ids in batch.input_nodes.items():
            of_dgl.srcnodes[kind].data[nid] = ids[: src[kind]]
            of_dgl.dstnodes[kind].data[nid] = ids[: dst[kind]]
            for name, rows in () if place else batch.features.items():
                if kind in rows and _is_of_nodes(name, rows[kind]):
                    of_dgl.srcnodes[kind].data[name] = rows[kind]
        for kind, block in blocks.items():
            of_dgl.edges[kind].data[eid] = block.edge_ids
            of_dgl.edges[kind].data.update({**block.edge_data, **block.features})
        made.append(of_dgl)
    return made


def _hetero_to_pyg(batch: Any) -> Any:
    """Returns a batch in torch tensors as a ``torch_geometric.data.HeteroData``."""
    import torch

    data = pyg_conversion.new("HeteroData")
    counts = _hop_counts(batch)
    for kind, ids in batch.input_nodes.items():
        store = data[kind]
        store.num_nodes, store.n_id = len(ids), ids
        if kind in batch.output_index:
            store.output_index = batch.output_index[kind]
        store.batch_size = batch.num_sampled_nodes[kind][0]
        if counts is not None:
            store.num_sampled_nodes = counts[0][kind]
        if batch.subgraph_ids is not None and kind in batch.subgraph_ids:
            store.batch = batch.subgraph_ids[kind]
        for name, rows in batch.features.items():
            if kind in rows:
                setattr(store, name, rows[kind])
    for kind in batch.blocks[0] if batch.blocks else ():
        blocks = [hop[kind] for hop in reversed(batch.blocks)]
        data[kind].edge_index = torch.cat([block.edge_index for block in blocks], 1)
        data[kind].e_id = torch.cat([block.edge_ids for block in blocks])
        if counts is not None:
            data[kind].num_sampled_edges = counts[1][kind]
        _put_edges(data[kind], blocks)
    return data


def _hop_counts(batch: Any) -> tuple[Any, Any] | None:
    """Returns how many nodes and edges each hop found; None where nobody knows."""
    if not batch._has_hops:
        return None
    nodes = getattr(batch, "num_sampled_nodes", None)
    return None if nodes is None else (nodes, batch.num_sampled_edges)


# The name that a loader gives to the rows of seeds, which are no rows of nodes.
_LABELS = "y"


def as_numpy(values: Any) -> Any:
    """Values of a batch of any library as NumPy's, copied from a GPU."""
    import numpy as np

    return np.asarray(values.cpu() if hasattr(values, "cpu") else values)


def _torch(batch: Any) -> Any:
    """A batch in torch's tensors."""
    return batch if batch.form == "torch" else batch.torch()


def _coo(block: Any) -> tuple[Any, Any]:
    """The ends of the edges of a block in local ids, of NumPy."""
    import numpy as np

    first, indptr = block.dst_offset, as_numpy(block.indptr)
    rows = np.arange(first, first + len(indptr) - 1)
    return as_numpy(block.indices), np.repeat(rows, np.diff(indptr))


def _matrix(block: Any) -> Any:
    weights, first = block.edge_weights, block.dst_offset
    return block_matrix(
        as_numpy(block.indptr),
        as_numpy(block.indices),
        None if weights is None else as_numpy(weights),
        (block.num_src_nodes, first + block.num_dst_nodes),
        first,
    )


def _check_offset(block: Any, place: int) -> None:
    if block.dst_offset:
        raise ValueError(
            f"to_dgl: expected destinations first among the sources, as blocks of DGL have them, "
            f"got blocks[{place}] with dst_offset {block.dst_offset}; frontier='all' samples such "
            "blocks"
        )


def _rows_of_nodes(features: Mapping[str, Any]) -> dict[str, Any]:
    return {name: rows for name, rows in features.items() if _is_of_nodes(name, rows)}


def _is_of_nodes(name: str, feature_rows: Any) -> bool:
    """True for a tensor of nodes; DGL has no place for frames."""
    return name != _LABELS and not is_tensor_frame(feature_rows)


def _of_rows(indptr: Any, num_rows: int) -> Any:
    """``indptr`` of a relation in which the last nodes of its type are no destinations."""
    missing = num_rows + 1 - len(indptr)
    return indptr if missing <= 0 else _torch_cat([indptr, indptr[-1:].expand(missing)])


def _torch_cat(tensors: Any) -> Any:
    import torch

    return torch.cat(tensors)


def _put_edges(store: Any, blocks: list[Any]) -> None:
    """The factors, values by name and features of the edges of all hops."""
    import torch

    if not blocks:
        return
    if any(block.edge_weights is not None for block in blocks):
        factors = [block.edge_weights for block in blocks]
        ones = (block.edge_ids.new_ones(block.num_edges, dtype=torch.float32) for block in blocks)
        pairs = zip(factors, ones, strict=True)
        store.edge_weight = torch.cat([one if of is None else of for of, one in pairs])
    for name in dict.fromkeys(name for block in blocks for name in block.edge_values):
        if not all(name in block.edge_values for block in blocks):
            raise ValueError(
                f"to_pyg: expected values {name!r} of the edges of all blocks, which PyG has in "
                "one array, got blocks without"
            )
        setattr(store, name, torch.cat([block.edge_values[name] for block in blocks]))
    for name in blocks[0].features:
        setattr(store, name, torch.cat([block.features[name] for block in blocks]))
