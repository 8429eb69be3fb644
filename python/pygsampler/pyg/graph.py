"""The in-edges of what PyG calls a graph: Data, or a pair of stores."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import numpy
import torch
from torch_geometric import data as pyg
from torch_geometric.data import Data, HeteroData

from pygsampler._arrays.array import BY_TORCH
from pygsampler._engine.checks import describe
from pygsampler._graph.graph import Graph, is_homogeneous
from pygsampler.pyg.options import check_range
from pygsampler.pyg.stores import GraphStore, tensor_of

__all__ = ["graph_of", "homogeneous", "with_edge_index"]


def graph_of(
    data: Any,
    device: Any = None,
    is_sorted: bool = False,
    backward: bool = False,
    array: tuple[str, str] | None = None,
    reads: tuple[tuple[str, ...], tuple[str, ...]] = ((), ()),
    row_names: tuple[str, ...] = (),
) -> Graph:
    """Returns the in-edges of ``data``; the id of an edge is its column of ``edge_index``.

    ``data`` is a ``Data`` with ``edge_index`` or ``adj_t``, a pair of FeatureStore and GraphStore,
    a Graph, or such a pair that has one. The graph is on ``device``; by default on the device of
    the edges. ``is_sorted`` promises that ``edge_index`` is ordered by its row 1: then it is not
    sorted, nor copied. ``backward`` gives the out-edges, and ``is_sorted`` is about row 0.
    ``array``, an option and a name, asks for that attribute of edges in ``edata``, by a copy: of a
    Data in the order of its edges, where "edge_weight" may be the values of an ``adj_t``; of a
    Graph an array that it has. ``reads`` names more attributes of edges, and of nodes: rows of
    values where ``row_names`` has them.

    Raises ``TypeError`` for anything else, ``ValueError`` for a broken promise and an attribute
    that does not exist or has another length, and ``NotImplementedError`` for heterogeneous graphs
    and attributes of stores.
    """
    if isinstance(data, (tuple, list)) and len(data) == 2 and isinstance(data[1], GraphStore):
        # The graph itself, with its arrays: a CSC of tensors would copy the arrays of a file.
        data = data if data[1].graph is None else data[1].graph
    if is_homogeneous(data):
        # The service that samples a partitioned graph knows its arrays.
        if array is not None and array[1] not in data.edata and data._service is None:
            raise _unknown(*array, "an edge array of the graph", data.edata)
        if backward:
            place = data.device if device is None else device
            graph = _reversed(data.to("cpu"))
            names = [*([array[1]] if array else []), *reads[0]]
            graph = graph.with_data(
                {name: data.edata[name] for name in names if name in data.edata},
                {name: data.ndata[name] for name in reads[1] if name in data.ndata},
            )
            return graph.pin(place) if data.pinned and device is None else graph.to(place)
        return data if device is None else data.to(device)
    homogeneous(data)
    if isinstance(data, (tuple, list)):
        graph, place = _of_stores(data)
        graph = _reversed(graph) if backward else graph
    else:
        graph, place = _of_data(data, is_sorted, backward)
    if array is not None:
        graph = graph.with_data({array[1]: _edge_attribute(data, *array, graph.num_edges)})
    if any(reads):
        count = graph.num_edges
        graph = graph.with_data(
            {name: _edge_attribute(data, "edata", name, count) for name in reads[0]},
            {
                name: _node_attribute(data, name, graph.num_nodes, name in row_names)
                for name in reads[1]
            },
        )
    if device is None:
        device = place
    return graph if device is None else graph.to(device)


def homogeneous(data: Any) -> None:
    """Raises NotImplementedError for HeteroData."""
    if isinstance(data, HeteroData):
        raise NotImplementedError(
            "data: expected a homogeneous Data, got HeteroData; NeighborLoader and "
            "PGSampler take it, and data.to_homogeneous() makes a Data of one"
        )


def with_edge_index(data: Any) -> Any:
    """``data`` with its edges in ``edge_index`` where it has matrices of torch.sparse, else itself.

    PyG makes such an ``adj_t`` where torch-sparse is missing, but its loaders cannot take a part of
    one. Edges keep their places in ``adj_t`` as ids. Its values become ``edge_weight``, which is
    where ``ToSparseTensor`` had them from, or ``edge_attr`` if they are no numbers but rows.
    """
    if isinstance(data, HeteroData):
        return _hetero_with_edge_index(data)
    if not isinstance(data, Data) or not _has_matrix(data):
        return data
    num_nodes = data.num_nodes
    data = copy.copy(data)
    data.num_nodes = num_nodes
    _list_edges(data, "data")
    return data


def _hetero_with_edge_index(data: Any) -> Any:
    kinds = [kind for kind in data.edge_types if _has_matrix(data[kind])]
    if not kinds:
        return data
    data = copy.copy(data)
    for kind in kinds:
        # A matrix has a row for each target, and a column for each source.
        for end, count in zip((kind[2], kind[0]), data[kind].adj_t.shape, strict=False):
            if not data[end].can_infer_num_nodes:
                data[end].num_nodes = count
        _list_edges(data[kind], f"data[{kind!r}]")
    return data


def _has_matrix(store: Any) -> bool:
    return "adj_t" in store and isinstance(store["adj_t"], torch.Tensor)


def _list_edges(store: Any, where: str) -> None:
    """Puts the edges of ``adj_t``, and its values, in their place."""
    adjacency = store["adj_t"]
    if adjacency.layout == torch.sparse_coo:
        # Not coalesced: that would add up parallel edges, and order them anew.
        (target, source), values = adjacency._indices(), adjacency._values()
    elif adjacency.layout in (torch.sparse_csr, torch.sparse_csc):
        rows = adjacency.to_sparse_csr()
        indptr, source, values = rows.crow_indices(), rows.col_indices(), rows.values()
        each = torch.arange(len(indptr) - 1, dtype=indptr.dtype, device=indptr.device)
        target = each.repeat_interleave(indptr.diff(), output_size=len(source))
    else:
        raise TypeError(
            f"{where}.adj_t: expected a sparse CSR or COO matrix, got {adjacency.layout}"
        )
    del store["adj_t"]
    store["edge_index"] = torch.stack([source, target])
    name = "edge_weight" if values.dim() == 1 else "edge_attr"
    if name not in store:
        store[name] = values
    for name in ("edge_weight", "edge_attr"):
        if name in store and len(store[name]) != len(source):
            raise ValueError(
                f"{where}.{name}: expected one for each of {len(source)} edges of {where}.adj_t, "
                f"got {len(store[name])}; ToSparseTensor merges parallel edges, and data with "
                f"edge_index keeps them"
            )


def _node_attribute(data: Any, name: str, num_nodes: int, is_row: bool) -> torch.Tensor:
    """A copy, on the CPU, of the attribute of nodes with that name: of values, or of rows."""
    if isinstance(data, (tuple, list)):
        values = tensor_of(data[0], name)
    elif name not in data:
        raise _unknown("ndata", name, "an attribute of the nodes of data", data.node_attrs())
    else:
        values = data[name]
    is_tensor = isinstance(values, torch.Tensor)
    if is_row and is_tensor and values.dim() == 2 and len(values) == num_nodes:
        return values.detach().cpu().clone()
    if is_row or not is_tensor or values.numel() != num_nodes:
        raise ValueError(
            f"ndata: expected a {'row' if is_row else 'number'} for each of {num_nodes} nodes in "
            f"data.{name}, got {describe(values)}"
        )
    return values.detach().cpu().reshape(num_nodes).clone()


def _edge_attribute(data: Any, option: str, name: str, num_edges: int) -> torch.Tensor:
    """A copy, on the CPU, of the attribute of edges with that name."""
    if isinstance(data, (tuple, list)):
        if option != "edata":
            raise NotImplementedError(
                f"{option}: expected None with (FeatureStore, GraphStore), got {name!r}; as in PyG "
                "it is an attribute of a Data"
            )
        kept = tensor_of(data[0], name)
        if kept.numel() != num_edges:
            raise ValueError(
                f"edata: expected a number for each of {num_edges} edges in {name!r} of the "
                f"FeatureStore, got shape {tuple(kept.shape)}"
            )
        return kept.detach().cpu().reshape(num_edges).clone()
    data = with_edge_index(data)
    adjacency: Any = getattr(data, "adj_t", None)
    values: Any = None
    if name in data:
        values = data[name]
    elif name == "edge_weight" and hasattr(adjacency, "csr"):
        values = adjacency.csr()[2]
    if values is None:
        known = [key for key in data.edge_attrs() if key not in ("adj_t", "edge_index")]
        raise _unknown(option, name, "an attribute of the edges of data", known)
    if not isinstance(values, torch.Tensor):
        raise TypeError(f"{option}: expected a tensor in data.{name}, got {describe(values)}")
    if values.numel() != num_edges or values.shape[:1] != (num_edges,):
        raise ValueError(
            f"{option}: expected one value for each of {num_edges} edges in data.{name}, got shape "
            f"{tuple(values.shape)}"
        )
    return values.detach().to("cpu", copy=True)


def _unknown(option: str, name: str, what: str, names: Iterable[str]) -> ValueError:
    have = ", ".join(map(repr, names)) or "none"
    return ValueError(f"{option}: expected the name of {what} ({have}), got {name!r}")


def _reversed(graph: Graph) -> Graph:
    """``graph``, on the CPU, with each edge turned round; edges keep their ids."""
    indptr, sources = graph.indptr.numpy(), graph.indices.numpy()
    targets = numpy.arange(len(indptr) - 1, dtype=sources.dtype).repeat(numpy.diff(indptr))
    turned = Graph.from_coo(targets, sources, num_nodes=graph.num_nodes)
    if graph.edge_ids is None or turned.edge_ids is None:
        return turned
    return Graph.from_csc(
        turned.indptr,
        turned.indices,
        edge_ids=graph.edge_ids.numpy()[turned.edge_ids.numpy()],
        num_nodes=graph.num_nodes,
    )


def _of_data(data: Any, is_sorted: bool, backward: bool) -> tuple[Graph, Any]:
    """The graph and, where it is to be elsewhere by default, that device."""
    edges = getattr(data, "edge_index", None)
    if not hasattr(data, "num_nodes"):
        remedy = ""
        if isinstance(data, torch.Tensor):
            older = "pygsampler.pyg.loader.NeighborSampler"
            remedy = f"; PyG's older loader, which takes edge_index and sizes, is {older}"
        raise TypeError(f"data: expected a torch_geometric.data.Data, got {describe(data)}{remedy}")
    adjacency = getattr(data, "adj_t", None)
    if isinstance(adjacency, torch.Tensor) and adjacency.layout == torch.sparse_coo:
        return _of_data(with_edge_index(data), False, backward)
    if adjacency is not None:
        # Features are read from ``data``, which is sent to workers by itself.
        graph = Graph.from_pyg(data)._plain()
        return _reversed(graph) if backward else graph, None
    if edges is None:
        edges = torch.empty(2, 0, dtype=torch.int64)
    if not isinstance(edges, torch.Tensor) or edges.dim() != 2 or edges.shape[0] != 2:
        shape = tuple(edges.shape) if isinstance(edges, torch.Tensor) else describe(edges)
        raise ValueError(f"data.edge_index: expected a tensor of shape (2, E), got {shape}")
    if hasattr(edges, "as_tensor"):
        edges = edges.as_tensor()
    if edges.dtype not in (torch.int32, torch.int64):
        raise TypeError(f"data.edge_index: expected int32 or int64 ids, got {edges.dtype}")
    nodes = int(data.num_nodes or 0)
    # A CSC made on the host is the same, edge by edge, and the sort needs no room on the GPU.
    place = str(edges.device) if edges.is_cuda else None
    src, dst = edges.cpu().contiguous().flip(0) if backward else edges.cpu().contiguous()
    if not is_sorted:
        try:
            graph = Graph.from_coo(src, dst, num_nodes=nodes)
        except (IndexError, ValueError):
            # The engine checks while it sorts, but knows the rows by other names.
            _check_edges(edges.cpu(), nodes)
            raise
        return _shared(graph), place
    if bool((dst[1:] < dst[:-1]).any()):
        raise ValueError(
            f"is_sorted: expected edge_index ordered by its row {1 - backward}, got another order; "
            "is_sorted=False sorts it"
        )
    if dst.numel() and not (int(dst[0]) >= 0 and int(dst[-1]) < nodes):
        _check_edges(edges.cpu(), nodes)
    indptr = torch.searchsorted(dst, torch.arange(nodes + 1, dtype=dst.dtype))
    try:
        return Graph.from_csc(indptr, src, num_nodes=nodes), place
    except (IndexError, ValueError):
        _check_edges(edges.cpu(), nodes)
        raise


def _check_edges(edges: torch.Tensor, nodes: int) -> None:
    """Raises IndexError for the first end of an edge that is no node, as the user knows it."""
    for row, ends in enumerate(edges):
        check_range(ends, f"data.edge_index[{row}]", nodes)


def _of_stores(stores: Any) -> tuple[Graph, Any]:
    if (
        len(stores) != 2
        or not isinstance(stores[0], pyg.FeatureStore)
        or not isinstance(stores[1], pyg.GraphStore)
    ):
        raise TypeError(
            f"data: expected a Data, a Graph or (FeatureStore, GraphStore), got {describe(stores)}"
        )
    edges = stores[1].get_all_edge_attrs()
    types = {attr.edge_type for attr in edges}
    if types - {None}:
        raise NotImplementedError(
            f"data: expected a graph store without edge types, got {sorted(map(str, types))}; "
            f"NeighborLoader and PGSampler take one with them, and to_homogeneous() of a "
            f"HeteroData makes a Data of one"
        )
    if not edges:
        raise ValueError("data: expected a graph store with edges, got an empty one")
    row, indptr, ids = stores[1].csc()
    place = str(row.device) if row.is_cuda else None
    row, indptr = row.cpu().contiguous(), indptr.cpu().contiguous()
    # A store need not know its size.
    largest = int(row.max()) if row.numel() else -1
    nodes = max(edges[0].size or (len(indptr) - 1, largest + 1))
    if ids is not None:
        ids = ids.cpu().contiguous()
    return Graph.from_csc(indptr, row, edge_ids=ids, num_nodes=nodes), place


def _shared(graph: Graph) -> Graph:
    """The same graph, whose arrays torch puts into shared memory when they are pickled.

    Workers that are spawned get the arrays so, instead of a copy for each.
    """
    for part in graph._source._open():
        if part is not None:
            part._source = BY_TORCH
    return graph
