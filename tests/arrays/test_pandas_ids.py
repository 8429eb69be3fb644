"""Ids in the columns of pandas and Arrow, by every loader as by the core: values count, not the
index of a Series."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from partners import partner

import pygsampler as pgs
import pygsampler.torch as pgt
from pygsampler._arrays.tensors import as_tensor

EDGES = torch.tensor([[0, 1, 2, 3], [1, 2, 0, 1]])
IDS = [1, 3, 2]
KINDS = (
    *("series", "Int64", "arrow dtype", "category", "object", "index"),
    *("arrow", "chunked", "numpy objects", "read-only"),
)


def column(kind: str, values: list[Any] = IDS) -> Any:
    pd, pa = partner("pandas"), partner("pyarrow")
    # No id 0 in its index: torch would look that up.
    series = pd.Series(values, index=range(7, 7 + len(values)))
    if kind in ("series", "index"):
        return series if kind == "series" else pd.Index(values)
    if kind in ("Int64", "category", "object"):
        return series.astype(kind)
    if kind == "arrow dtype":
        return series.astype("int64[pyarrow]")
    if kind == "arrow":
        return pa.array(values)
    if kind == "chunked":
        return pa.chunked_array([values[:1], values[1:]])
    array = np.array(values, object if kind == "numpy objects" else None)
    array.flags.writeable = False
    return array


def graph() -> pgs.Graph:
    return pgs.Graph.from_coo(EDGES[0], EDGES[1])


@pytest.mark.parametrize("kind", KINDS)
def test_ids_are_the_values(kind: str) -> None:
    ids = column(kind)
    assert as_tensor(ids).tolist() == IDS
    assert as_tensor((ids, ids)).tolist() == [IDS, IDS]
    assert pgs.PGSampler([2]).sample(graph(), ids).output_nodes.tolist() == IDS
    assert pgs.Graph.from_coo(ids, ids).indices.tolist() == [1, 2, 3]
    assert pgs.RandomWalk(2).sample(graph(), ids).numpy().nodes[:, 0].tolist() == IDS
    loader = pgt.DataLoader(graph(), ids, [2], batch_size=2)
    assert torch.cat([batch.output_nodes for batch in loader]).tolist() == IDS
    typed = pgs.HeteroGraph.from_coo({("a", "to", "b"): (ids, ids)}, {"a": 4, "b": 4})
    batches = pgt.DataLoader(typed, {"b": ids}, [2], batch_size=3)
    assert next(iter(batches)).output_nodes["b"].tolist() == IDS
    links = pgt.LinkLoader(graph(), ids, [2], batch_size=3, labels=column(kind, [7, 8, 9]))
    batch = next(iter(links))
    assert batch.edge_label.tolist() == [7, 8, 9]
    pairs = pgt.LinkLoader(graph(), (ids, ids), [2], batch_size=3, exclude=None)
    batch = next(iter(pairs))
    nodes = batch.minibatch.input_nodes[batch.edge_label_index]
    assert nodes.tolist() == [IDS, IDS]


@pytest.mark.parametrize("kind", KINDS)
def test_ids_of_pyg_are_the_values(kind: str) -> None:
    data = partner("torch_geometric.data").Data(edge_index=EDGES, num_nodes=4)
    pyg = partner("pygsampler.pyg")
    ids = column(kind)
    loader = pyg.NeighborLoader(data, [2], input_nodes=ids, batch_size=3)
    assert next(iter(loader)).n_id[:3].tolist() == IDS
    loader = pyg.LinkNeighborLoader(
        data, [2], edge_label_index=(ids, ids), edge_label=ids, batch_size=3
    )
    batch = next(iter(loader))
    assert batch.n_id[batch.edge_label_index].tolist() == [IDS, IDS]
    assert batch.edge_label.tolist() == IDS
    assert pyg.ShaDowKHopSampler(data, 1, 2, node_idx=ids).node_idx.tolist() == IDS


@pytest.mark.parametrize("kind", KINDS)
def test_ids_of_dgl_are_the_values(kind: str) -> None:
    g = partner("dgl").graph((EDGES[0], EDGES[1]))
    dgl = partner("pygsampler.dgl")
    _, _, blocks = dgl.NeighborSampler([2]).sample(g, column(kind))
    assert blocks[0].dstdata["_ID"].tolist() == IDS
    assert dgl.random_walk(g, column(kind), length=1)[0][:, 0].tolist() == IDS


def test_names_say_how_they_become_ids() -> None:
    named = pgs.Graph.from_coo(["a", "b"], ["b", "a"], renumber=True)
    way = r"names are no ids; graph.index_of\(names\) gives the ids of nodes by name"
    for names in (["a", "b"], column("series", ["a", "b"]), column("arrow", ["a", "b"])):
        with pytest.raises(TypeError, match=f"seeds: expected .*: {way}"):
            pgt.DataLoader(named, names, [2], batch_size=1)
        with pytest.raises(TypeError, match=f"edges: expected .*: {way}"):
            pgt.LinkLoader(named, (names, names), [2], batch_size=1)
        loader = pgt.DataLoader(named, named.index_of(names), [2], batch_size=2)
        assert next(iter(loader)).output_nodes.tolist() == [0, 1]
    g = partner("dgl").graph((EDGES[0], EDGES[1]))
    with pytest.raises(TypeError, match=way):
        partner("pygsampler.dgl").NeighborSampler([2]).sample(g, ["a"])


def test_columns_that_are_no_ids() -> None:
    pd = partner("pandas")
    for values, error in (
        (pd.Series([1.5]), TypeError),
        (pd.Series([True]), TypeError),
        (pd.Series([1, None], dtype="Int64"), TypeError),
        (pd.Series([9]), IndexError),
    ):
        with pytest.raises(error, match="seeds"):
            pgt.DataLoader(graph(), values, [2], batch_size=1)
