"""The factors of ``"ht"`` mean the same on every surface: that of each edge is 1 in the mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from pygsampler.samplers import layer_wise

from . import laws

# The sources of each row, two parallel edges among them, and the weights of its edges.
SOURCES, WEIGHTS = np.array([0, 0, 1, 2, 3, 4]), np.array([1.0, 2.0, 3.0, 4.0, 1.0, 2.0])
EDGES, ROWS = len(SOURCES), 4000
KIND = ("v", "to", "v")
Drawn = tuple[Any, Any]  # edge ids and factors of a batch that has all rows


def ends(sources: Any = SOURCES, rows: int = ROWS) -> tuple[Any, Any]:
    """Rows that have the same sources, each of its own: so they are independent."""
    row = np.repeat(np.arange(rows), len(sources))
    return rows * (1 + np.tile(sources, rows)) + row, row


def nodes() -> int:
    """Not as many as edges: PyG tells attributes by their lengths."""
    return ROWS * (2 + int(SOURCES.max())) + 1


def plain() -> pgs.Graph:
    data = {"w": np.tile(WEIGHTS, ROWS), "m": np.ones(EDGES * ROWS, bool)}
    return pgs.Graph.from_coo(*ends(), num_nodes=nodes(), edge_data=data)


def typed() -> pgs.Graph:
    """Two types of vertices, so that rows draw by their type."""
    src, dst = ends()
    kind, other = KIND, ("u", "to", "v")
    w = np.tile(WEIGHTS, ROWS)
    return pgs.Graph.from_coo(
        {kind: (src, dst), other: (src, dst)},
        num_nodes={"v": nodes(), "u": nodes()},
        edge_data={kind: {"w": w, "m": w > 0}, other: {"w": w, "m": w > 0}},
    )


def fair(ids: Any, factors: Any, edges: int = EDGES, rows: int = ROWS) -> None:
    """Each edge of a row has the mean factor 1, within five standard errors."""
    found = np.zeros(edges * rows)
    np.add.at(found, np.asarray(ids), np.asarray(factors, np.float64))
    for place, values in enumerate(found.reshape(rows, edges).T):
        assert values.any(), place
        error = values.std(ddof=1) / np.sqrt(rows)
        assert abs(values.mean() - 1) <= 5 * error + 1e-6, (place, values.mean(), error)


def of_block(block: Any) -> Drawn:
    return block.edge_ids, block.edge_weights


def core(sampler: Any, graph: Any, **options: Any) -> Drawn:
    if not graph.is_homogeneous:
        batch = sampler.sample(graph, {"v": np.arange(ROWS)}, epoch=0, batch=1)
        return of_block(batch.blocks[0][KIND])
    block = sampler.sample(graph, np.arange(ROWS), epoch=0, batch=1, **options).blocks[0]
    return (
        of_block(block)
        if block.edge_weights is not None
        else (block.edge_ids, block.edge_data["w"])
    )


CORE: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "uniform": (lambda: pgs.PGSampler([3], edge_weights="ht", seed=1), plain),
    "replace": (lambda: pgs.PGSampler([3], replace=True, edge_weights="ht", seed=1), plain),
    "mask": (lambda: pgs.PGSampler([3], mask="m", edge_weights="ht", seed=1), plain),
    "prob": (lambda: pgs.PGSampler([3], prob="w", edge_weights="ht", seed=1), plain),
    "prob, replace": (
        lambda: pgs.PGSampler([3], prob="w", replace=True, edge_weights="ht", seed=1),
        plain,
    ),
    "types": (lambda: pgs.PGSampler([3], edge_weights="ht", seed=1), typed),
    "types, prob": (lambda: pgs.PGSampler([3], prob="w", edge_weights="ht", seed=1), typed),
}
for weight in (None, "w"):
    for exact in (False, True):
        name = f"{'exact' if exact else 'poisson'}{', prob' if weight else ''}"
        CORE[f"LaborSampler, {name}"] = (
            lambda exact=exact, prob=weight: pgs.LaborSampler(
                [3], exact=exact, prob=prob, seed=1, edge_weights="ht"
            ),
            typed,
        )
        CORE[f"labor, {name}"] = (
            lambda exact=exact, weight=weight: layer_wise.labor(
                fanouts=[3], exact=exact, weight=weight, weights="ht", seed=1
            ),
            plain,
        )
CORE["LaborSampler, rounds"] = (
    lambda: pgs.LaborSampler([3], importance=2, prob="w", seed=1, edge_weights="ht"),
    typed,
)
CORE["labor, rounds"] = (
    lambda: layer_wise.labor(fanouts=[3], importance=2, weight="w", weights="ht", seed=1),
    plain,
)


@pytest.mark.parametrize("name", CORE)
def test_of_samplers(name: str) -> None:
    make, graph = CORE[name]
    fair(*core(make(), graph()))


@pytest.mark.parametrize("fanout", [2, 3])
@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("excluded", [False, True])
def test_parallel_edges_of_exact_labor(fanout: int, weight: str | None, excluded: bool) -> None:
    """More of them than the fanout, too; and without the first one of each row."""
    sources, w = np.array([0, 2, 0, 1, 0, 0, 1]), np.array([1.0, 2.0, 1.5, 2.0, 3.0, 1.0, 1.0])
    src, dst = ends(sources)
    data = {"w": np.tile(w, ROWS)}
    count = int(src.max()) + 1
    kind = {KIND: (src, dst)}
    alone = pgs.Graph.from_coo(src, dst, num_nodes=count, edge_data=data)
    one = pgs.Graph.from_coo(kind, num_nodes={"v": count}, edge_data={KIND: data})
    out = np.arange(0, len(src), 7) if excluded else np.arange(0)
    program = layer_wise.labor(fanouts=[fanout], exact=True, weight=weight, weights="ht", seed=2)
    family = pgs.LaborSampler([fanout], exact=True, prob=weight, seed=2, edge_weights="ht")
    block = program.sample(alone, np.arange(ROWS), epoch=0, batch=1, exclude=out).blocks[0]
    batch = family.sample(one, {"v": np.arange(ROWS)}, epoch=0, batch=1, exclude={KIND: out})
    other = batch.blocks[0][KIND]
    assert block.edge_ids.tolist() == other.edge_ids.tolist()
    factors = other.edge_weights
    assert factors is not None
    assert block.edge_data["w"].tolist() == pytest.approx(factors.tolist(), rel=1e-6)
    assert (np.diff(block.indptr.numpy())[:ROWS] == fanout).all()
    ids = block.edge_ids.numpy()
    here = np.isin(np.arange(len(src)), out, invert=True)
    place = np.cumsum(here) - 1
    assert here[ids].all()
    fair(place[ids], factors, 7 - excluded)
    if weight is None:
        # All numbers of a row are independent, so each subset of its edges is as likely.
        rows = np.sort((place[ids] % (7 - excluded)).reshape(ROWS, fanout), axis=1)
        assert laws.subsets(rows, 7 - excluded) > 1e-5


def test_chances_of_poisson_labor_by_weight() -> None:
    """Of the weights 1, 2 and 3 and K = 2 they are 0.3, 0.6 and 0.9, and factors one over them."""
    src, dst = ends(np.arange(3))
    data = {"w": np.tile([1.0, 2.0, 3.0], ROWS)}
    graph = pgs.Graph.from_coo(src, dst, num_nodes=4 * ROWS, edge_data=data)
    sampler = layer_wise.labor(fanouts=[2], weight="w", weights="ht", seed=1)
    block = sampler.sample(graph, np.arange(ROWS), epoch=0, batch=0).blocks[0]
    chances = np.array([0.3, 0.6, 0.9])
    ids = block.edge_ids.numpy()
    assert block.edge_data["w"].numpy() == pytest.approx(1 / chances[ids % 3], rel=1e-6)
    error = np.sqrt(chances * (1 - chances) / ROWS)
    assert (abs(np.bincount(ids % 3) / ROWS - chances) < 4.5 * error).all()
    every = layer_wise.labor(fanouts=[-1], weight="w", weights="ht", seed=1)
    for exact in (False, True):
        whole = (
            every
            if not exact
            else layer_wise.labor(fanouts=[-1], weight="w", weights="ht", exact=True, seed=1)
        )
        made = whole.sample(graph, np.arange(9), epoch=0, batch=0).blocks[0]
        assert made.edge_data["w"].tolist() == [1.0] * 27


LABOR = pytest.mark.parametrize("labor", [None, "poisson", "exact"])
PROB = pytest.mark.parametrize("prob", [None, "w"])


def sampler_of(labor: str | None, prob: str | None) -> Any:
    how: dict[str, Any] = {"prob": prob, "edge_weights": "ht", "seed": 1}
    if labor is None:
        return pgs.PGSampler([3], **how)
    return pgs.LaborSampler([3], exact=labor == "exact", **how)


@LABOR
@PROB
@pytest.mark.parametrize("types", [False, True])
def test_of_loaders(labor: str | None, prob: str | None, types: bool) -> None:
    torch = pytest.importorskip("torch")
    from pygsampler.torch import DataLoader

    seeds: Any = torch.arange(ROWS)
    graph: Any = typed() if types else plain()
    sampler = sampler_of(labor, prob)
    loader: Any = DataLoader(graph, {"v": seeds} if types else seeds, sampler, batch_size=ROWS)
    (batch,) = loader
    fair(*of_block(batch.blocks[0][KIND] if types else batch.blocks[0]))


@LABOR
@PROB
@pytest.mark.parametrize("types", [False, True])
def test_of_link_loaders(labor: str | None, prob: str | None, types: bool) -> None:
    torch = pytest.importorskip("torch")
    from pygsampler.torch import LinkLoader

    edges: Any = torch.arange(0, EDGES * ROWS, EDGES)
    sampler = sampler_of(labor, prob)
    loader: Any = LinkLoader(
        typed() if types else plain(),
        {KIND: edges} if types else edges,
        sampler,
        batch_size=ROWS,
        exclude=None,
    )
    (batch,) = loader
    fair(*of_block(batch.minibatch.blocks[0][KIND] if types else batch.minibatch.blocks[0]))


@LABOR
@PROB
@pytest.mark.parametrize("types", [False, True])
def test_of_pyg(labor: str | None, prob: str | None, types: bool) -> None:
    torch = pytest.importorskip("torch")
    data_of = pytest.importorskip("torch_geometric.data")
    from pygsampler.pyg import NeighborLoader

    edge_index = torch.from_numpy(np.stack(ends()))
    w, e = torch.from_numpy(np.tile(WEIGHTS, ROWS)), torch.arange(EDGES * ROWS)
    if types:
        data = data_of.HeteroData()
        data["v"].num_nodes = data["u"].num_nodes = nodes()
        for kind in (KIND, ("u", "to", "v")):
            data[kind].edge_index, data[kind].w, data[kind].place = edge_index, w, e
    else:
        data = data_of.Data(edge_index=edge_index, num_nodes=nodes(), w=w, place=e)
    rows: Any = torch.arange(ROWS)
    loader = NeighborLoader(
        data,
        [3],
        ("v", rows) if types else rows,
        batch_size=ROWS,
        labor=labor,
        weight_attr=prob,
        edge_weights="ht",
        seed=1,
    )
    (batch,) = loader
    store = batch[KIND] if types else batch
    fair(store.place, store.edge_weights)


@PROB
@pytest.mark.parametrize("types", [False, True])
def test_of_dgl(prob: str | None, types: bool) -> None:
    torch = pytest.importorskip("torch")
    dgl = pytest.importorskip("dgl")
    from pygsampler.dgl import PGSampler

    pair = tuple(map(torch.from_numpy, ends()))
    w, rows = torch.from_numpy(np.tile(WEIGHTS, ROWS)), torch.arange(ROWS)
    if types:
        kinds = {KIND: pair, ("u", "to", "v"): pair}
        g = dgl.heterograph(kinds, num_nodes_dict={"v": nodes(), "u": nodes()})
        for kind in kinds:
            g.edges[kind].data["w"] = w
    else:
        g = dgl.graph(pair, num_nodes=nodes())
        g.edata["w"] = w
    sampler = PGSampler([3], prob=prob, edge_weights="ht", seed=1)
    block = sampler.sample(g, {"v": rows} if types else rows)[2][0]
    frame = block.edges[KIND].data if types else block.edata
    fair(frame[dgl.EID], frame["edge_weights"])


@pytest.mark.parametrize("exact", [False, True])
def test_of_dgls_sampler_of_programs(exact: bool) -> None:
    torch = pytest.importorskip("torch")
    dgl = pytest.importorskip("dgl")
    from pygsampler.dgl import Sampler

    g = dgl.graph(tuple(map(torch.from_numpy, ends())), num_nodes=nodes())
    g.edata["a"] = torch.from_numpy(np.tile(WEIGHTS, ROWS))
    program = layer_wise.labor(fanouts=[3], exact=exact, weight="a", weights="ht", seed=1)
    block = Sampler(program).sample(g, torch.arange(ROWS))[2][0]
    fair(block.edata[dgl.EID], block.edata["w"])
