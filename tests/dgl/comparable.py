"""Answers of DGL as plain values, which == compares completely."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

import dgl
import networkx
import numpy
import torch
from scipy import sparse

from tests.dgl.block_pairs import outcome


def plain(value: Any) -> Any:
    """An answer as something that == compares completely; an unknown kind of answer is an error."""
    if value is None or isinstance(value, (bool, int, str, type)):
        return value
    if isinstance(value, float):
        # SciPy's eigenvalues have random starts.
        return f"{value:.5g}"
    if isinstance(value, (torch.dtype, torch.device)):
        return str(value)
    if isinstance(value, dgl.DGLGraph):
        return description(value)
    if isinstance(value, torch.Tensor):
        if value.is_sparse:
            parts = value._indices(), value._values()
            return ["sparse", list(value.shape), *map(plain, parts)]
        # The values as a text, in which NaN is equal to NaN.
        return [str(value.dtype), str(value.device), repr(value.tolist())]
    if isinstance(value, numpy.ndarray):
        return [str(value.dtype), repr(value.tolist())]
    if sparse.issparse(value):
        parts = ("row", "col", "data") if value.format == "coo" else ("indptr", "indices", "data")
        return [value.format, value.shape, *(plain(getattr(value, part)) for part in parts)]
    if isinstance(value, networkx.Graph):
        return [
            type(value).__name__,
            plain(list(value.nodes(data=True))),
            plain(list(value.edges(data=True))),
        ]
    if type(value).__name__ == "SparseMatrix":
        return [value.shape, *map(plain, value.coo()), plain(value.val)]
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    raise TypeError(f"no comparison for {type(value)}")


def description(g: Any) -> dict[str, Any]:
    """Everything about a graph, or the error's class where it does not say."""
    index = g._graph
    return {
        "kind": [type(g).__name__, g.is_block, str(g.idtype), str(g.device)],
        "types": [g.ntypes, g.srctypes, g.dsttypes, g.etypes, g.canonical_etypes],
        "nodes": [index.number_of_nodes(i) for i in range(len(g.ntypes))],
        "edges": [
            [
                plain(outcome(lambda i=i, order=order: index.edges(i, order)))
                for i in range(len(g.etypes))
            ]
            for order in ("eid", "srcdst")
        ],
        "formats": sorted(chain(*g.formats().values())),
        "data": [plain(dict(frame)) for frame in (*g._node_frames, *g._edge_frames)],
        "batch": [
            plain(outcome(lambda: g.batch_size)),
            plain(outcome(lambda: [g.batch_num_edges(etype) for etype in g.canonical_etypes])),
        ],
    }
