"""PGSampler for DGL by weights and masks, beside DGL's own and the exact law."""

from __future__ import annotations

import gc
import pickle
from typing import Any

import dgl
import numpy as np
import pytest
import torch
from weighted_graphs import LEVEL, alike, edges_of, p_of_draws, p_of_sets

import pygsampler as pgs
from pygsampler._graph.relation import Relation
from pygsampler.dgl import PGSampler, Sampler
from pygsampler.dgl import graph as dgl_graph
from tests.dgl.graphs import DTYPES, content, random_graph

pytestmark = pytest.mark.filterwarnings(
    "ignore:Dataloader CPU affinity",
    "ignore:This process .* is multi-threaded:DeprecationWarning",
)
CPU = torch.device("cpu")
SEEDS = torch.arange(60)


def weighted(dtype: torch.dtype = torch.int64) -> Any:
    """A third of the edges has weight 0, and those into vertices 0 to 4 all."""
    g = random_graph(dtype=dtype)
    random = torch.Generator().manual_seed(1)
    kept = torch.rand(g.num_edges(), generator=random) > 0.3
    kept &= g.edges(order="eid")[1] > 4
    g.edata["w"] = torch.rand(g.num_edges(), generator=random) * kept
    g.edata["m"] = kept
    return g


def edges(result: tuple[Any, Any, Any]) -> list[torch.Tensor]:
    return [block.edata[dgl.EID].long() for block in result[2]]


def check(g: Any, fanouts: list[int], replace: bool, result: tuple[Any, Any, Any]) -> None:
    """Edges of positive weight alone, and as many as there are."""
    u, v = g.edges(order="eid")
    degrees = torch.bincount(v[g.edata["m"]].long(), minlength=g.num_nodes())
    for fanout, block in zip(fanouts, result[2], strict=True):
        ids = block.edata[dgl.EID].long()
        assert g.edata["m"][ids].all()
        assert block.edata["w"].equal(g.edata["w"][ids])
        rows, cols = block.edges(order="eid")
        assert u[ids].equal(block.srcdata[dgl.NID][rows.long()])
        assert v[ids].equal(block.dstdata[dgl.NID][cols.long()])
        degree = degrees[block.dstdata[dgl.NID].long()]
        if fanout < 0:
            expected = degree
        elif replace:
            expected = fanout * (degree > 0)
        else:
            expected = degree.clamp(max=fanout)
        assert block.in_degrees().long().equal(expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("by", [{"prob": "w"}, {"mask": "m"}, {"prob": "m"}], ids=str)
def test_edges_of_positive_weight(by: Any, replace: bool, dtype: torch.dtype) -> None:
    g, fanouts = weighted(dtype), [4, -1, 3]
    sampler = PGSampler(fanouts, replace=replace, **by)
    check(g, fanouts, replace, sampler.sample(g, SEEDS.to(dtype)))


def test_all_of_them_are_those_of_dgl() -> None:
    g = weighted()
    theirs = dgl.dataloading.NeighborSampler([-1, -1], prob="w", fused=False).sample(g, SEEDS)
    for by in ({"prob": "w"}, {"mask": "m"}):
        ours = PGSampler([-1, -1], **by).sample(g, SEEDS)
        for mine, other in zip(ours[2], theirs[2], strict=True):
            assert mine.edata[dgl.EID].sort()[0].equal(other.edata[dgl.EID].sort()[0])
            for ids in ("srcdata", "dstdata"):
                found, wanted = (getattr(b, ids)[dgl.NID].sort()[0] for b in (mine, other))
                assert found.equal(wanted)


def of_rows(weights: list[float], rows: int) -> Any:
    src, dst = edges_of(rows, len(weights))
    g = dgl.graph((torch.from_numpy(src), torch.from_numpy(dst)), num_nodes=rows)
    g.edata["w"] = torch.tensor(weights).repeat(rows)
    return g


@pytest.mark.parametrize("make", [PGSampler, dgl.dataloading.NeighborSampler])
def test_laws(make: Any) -> None:
    """DGL's own sampler keeps them too, which is said of the test as much as of it."""
    rows = 10000
    dgl.seed(7)
    torch.manual_seed(7)
    for weights, fanout in (([1.0, 2, 3], 2), ([1.0, 1, 2, 4], 3), ([2.0, 0, 1, 0, 1], 2)):
        g = of_rows(weights, rows)
        (found,) = edges(make([fanout], prob="w").sample(g, torch.arange(rows)))
        assert p_of_sets(found.numpy(), weights, fanout) > LEVEL
    weights = [0.0, 1, 2, 3, 0]
    sampler = make([3], prob="w", replace=True)
    (found,) = edges(sampler.sample(of_rows(weights, rows), torch.arange(rows)))
    assert len(found) == 3 * rows
    assert p_of_draws(found.numpy(), weights) > LEVEL


def test_batches_of_the_core() -> None:
    """The draws are those of a pygsampler.Graph with these weights, by seed, epoch and batch."""
    weights, rows = [1.0, 2, 0, 3], 50
    g, sampler = of_rows(weights, rows), PGSampler([2], prob="w", seed=3)
    sampler.set_epoch(1)
    (found,) = edges(sampler.sample(g, torch.arange(rows)))
    epoch, batch = sampler._identity.number(torch.arange(rows))
    core = pgs.PGSampler([2], prob="w", seed=3).sample(
        alike(weights, rows, "float32"), np.arange(rows), epoch=epoch, batch=batch
    )
    assert core.blocks[0].edge_ids.tolist() == found.tolist()


# ---- g.edata as it is ------------------------------------------------------------------------


def test_a_change_counts_from_the_next_batch() -> None:
    g = dgl.graph(([1, 2, 3], [0, 0, 0]))
    sampler, seed = PGSampler([-1], prob="w"), torch.tensor([0])

    def sample() -> list[int]:
        return edges(sampler.sample(g, seed))[0].tolist()

    g.edata["w"] = torch.tensor([1.0, 0, 1])
    assert sample() == [0, 2]
    g.edata["w"] = torch.tensor([0.0, 1, 1])
    assert sample() == [1, 2]
    g.edata["w"][1] = 0
    assert sample() == [2]
    g.edata["w"].mul_(0)
    assert sample() == []
    g.edata["w"] = torch.tensor([[1.0], [1], [0]])
    assert sample() == [0, 1], "a column"
    g.edata["w"].data = torch.tensor([[0.0], [0], [1]])
    assert sample() == [2]
    g.edata["w"] = torch.tensor([True, False, False])
    assert sample() == [0]
    g.edata["w"] = torch.tensor([0, 3, 0])
    assert sample() == [1]
    sampler.prob, sampler.mask = None, "w"
    g.edata["w"][0] = 1
    assert sample() == [0, 1]
    sampler.mask = None
    assert sample() == [0, 1, 2]
    g.add_edges([1], [0], {"w": torch.tensor([1])})
    sampler.prob = "w"
    assert sample() == [0, 1, 3], "another graph"


def test_weights_that_learn() -> None:
    g = dgl.graph(([1, 2, 3], [0, 0, 0]))
    g.edata["w"] = torch.nn.Parameter(torch.tensor([1.0, 1, 1]))
    sampler, seed = PGSampler([3], prob="w"), torch.tensor([0])
    assert edges(sampler.sample(g, seed))[0].tolist() == [0, 1, 2]
    g.edata["w"][1].backward()
    with torch.no_grad():
        g.edata["w"] -= g.edata["w"].grad
    assert edges(sampler.sample(g, seed))[0].tolist() == [0, 2]


def test_tables_are_made_once_and_forgotten_with_the_array(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    drawing = Relation._drawing

    def count(self: Relation, kind: str, where: str, values: Any) -> Relation:
        made.append(where)
        return drawing(self, kind, where, values)

    monkeypatch.setattr(Relation, "_drawing", count)
    g, other = weighted(), weighted()
    local = g.local_var()
    samplers = [PGSampler([3], prob="w"), PGSampler([2, 2], prob="w", replace=True)]
    for _ in range(3):
        for each in samplers:
            each.sample(g, SEEDS)
            # Its index and its arrays are those of g.
            each.sample(local, SEEDS)
    assert made == ["g.edata['w']"]
    # Two arrays in turn, of graphs that share an index.
    local.edata["w"] = local.edata["w"].clone()
    for _ in range(3):
        samplers[0].sample(g, SEEDS)
        samplers[0].sample(local, SEEDS)
    assert len(made) == 2
    drawn = dgl_graph._cached_graph(g).drawn
    assert len(drawn) == 2
    del local
    g.edata["w"] = g.edata["w"].clone()
    gc.collect()
    assert not drawn
    samplers[0].sample(g, SEEDS)
    samplers[0].sample(other, SEEDS)
    assert len(made) == 4 and len(drawn) == 1
    del g.edata["w"]
    assert not drawn


def test_tables_go_at_once() -> None:
    """Not when Python next looks for cycles: weights may change with each batch."""
    g, sampler = weighted(), PGSampler([3], prob="w")
    gc.collect()
    gc.disable()
    try:
        before = None
        for _ in range(6):
            g.edata["w"].mul_(1)
            sampler.sample(g, SEEDS)
            alive = sum(type(each) is pgs.Graph for each in gc.get_objects())
            assert before in (None, alive)
            before = alive
    finally:
        gc.enable()


def test_in_inference_mode() -> None:
    g, sampler = weighted(), PGSampler([3], prob="w")
    with torch.inference_mode():
        g.edata["w"] = g.edata["w"] * 2
        check(g, [3], False, sampler.sample(g, SEEDS))
    check(g, [3], False, sampler.sample(g, SEEDS))


def test_views_of_one_tensor_and_subgraphs() -> None:
    g = weighted()
    both = torch.stack([g.edata["w"], torch.zeros(g.num_edges())], 1)
    g.edata["w"] = both[:, 0]
    sampler = PGSampler([3], prob="w")
    check(g, [3], False, sampler.sample(g, SEEDS))
    both[:, 0] = 0
    assert not len(edges(sampler.sample(g, SEEDS))[0])
    part = dgl.node_subgraph(weighted(), torch.arange(300))
    check(part, [3], False, sampler.sample(part, SEEDS))


@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_graphs_without_csc(layout: str) -> None:
    g = weighted().formats(layout)
    check(weighted(), [3, 3], False, PGSampler([3, 3], prob="w").sample(g, SEEDS))


# ---- beside other options --------------------------------------------------------------------


@pytest.mark.parametrize("by", [{"prob": "w"}, {"mask": "m"}], ids=str)
def test_excluded_edges_are_sampled_around(by: Any) -> None:
    g = weighted()
    gone = torch.arange(0, g.num_edges(), 2)
    without = weighted()
    without.edata["w"][gone], without.edata["m"][gone] = 0, False
    found = PGSampler([3, 3], **by).sample(g, SEEDS, torch.cat([gone, torch.tensor([-1, 4000])]))
    for block in found[2]:
        block.edata["w"] = without.edata["w"][block.edata[dgl.EID]]
    check(without, [3, 3], False, found)


def test_link_prediction() -> None:
    g = weighted()
    sampler = dgl.dataloading.as_edge_prediction_sampler(
        PGSampler([3, 3], prob="w"),
        exclude="self",
        negative_sampler=dgl.dataloading.negative_sampler.Uniform(1),
    )
    loader = dgl.dataloading.DataLoader(g, torch.arange(200), sampler, batch_size=50)
    for _, positive, _, blocks in loader:
        gone = set(positive.edata[dgl.EID].tolist())
        for block in blocks:
            assert not gone & set(block.edata[dgl.EID].tolist())
            assert (block.edata["w"] > 0).all()


def test_any_sampler_of_the_core() -> None:
    g = weighted()
    for by in ({"prob": "w"}, {"mask": "m"}):
        inner = pgs.PGSampler([3, 3], seed=5, **by)
        found = Sampler(inner), PGSampler([3, 3], seed=5, **by)
        for each in found:
            each.set_epoch(0)
        one, other = (content(each.sample(g, SEEDS)) for each in found)
        assert one == other


@pytest.mark.parametrize(
    ("context", "persistent"), [("fork", False), ("fork", True), ("spawn", False)]
)
def test_workers(context: str, persistent: bool) -> None:
    g, sampler = weighted(), PGSampler([3, 3], prob="w", seed=2)

    def batches(workers: int) -> list[Any]:
        more: dict[str, Any] = {}
        if workers:
            more = {"multiprocessing_context": context, "persistent_workers": persistent}
        loader = dgl.dataloading.DataLoader(
            g, SEEDS, sampler, batch_size=16, num_workers=workers, **more
        )
        passes = 2 if persistent else 1
        return [sorted(map(content, loader), key=lambda batch: batch[1]) for _ in range(passes)]

    sampler.set_epoch(3)
    got = batches(1)
    assert got == batches(0)[:1] * len(got)
    if context == "fork":
        # The children have the tables that the parent has computed.
        assert batches(1) == got


def test_pickles_have_names() -> None:
    g = weighted()
    for by in ({"prob": "w"}, {"mask": "m"}):
        sampler = PGSampler([3], **by)
        other = pickle.loads(pickle.dumps(sampler))
        assert repr(other) == repr(sampler)
        assert (other.prob, other.mask) == (sampler.prob, sampler.mask)
        check(g, [3], False, other.sample(g, SEEDS))


# ---- what is refused -------------------------------------------------------------------------


def test_both_at_once() -> None:
    sampler = PGSampler([3], prob="w", seed=1)
    with pytest.raises(ValueError, match=r"^prob, mask: expected at most one of them, got both"):
        sampler.mask = "m"
    assert (sampler.prob, sampler.mask) == ("w", None)
    sampler.prob = None
    sampler.mask = "m"
    with pytest.raises(ValueError, match=r"^prob, mask: expected at most one of them, got both"):
        sampler.prob = "w"
    assert repr(sampler) == "pygsampler.dgl.PGSampler([3], replace=False, mask='m')"


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (-0.5, ValueError, r"^g.edata\['w'\]\[17\]: expected a finite weight >= 0, got -0.5"),
        (float("nan"), ValueError, r"^g.edata\['w'\]\[17\]: expected a finite weight >= 0, got"),
        (float("inf"), ValueError, r"^g.edata\['w'\]\[17\]: expected a finite weight >= 0, got"),
    ],
)
def test_weights_that_are_none(value: float, error: type[Exception], text: str) -> None:
    g, sampler = weighted(), PGSampler([3], prob="w")
    sampler.sample(g, SEEDS)
    g.edata["w"][17] = value
    for _ in range(2):
        with pytest.raises(error, match=text):
            sampler.sample(g, SEEDS)
    g.edata["w"][17] = 0
    sampler.sample(g, SEEDS)


def test_arrays() -> None:
    g = weighted()
    g.edata["two"] = torch.ones(g.num_edges(), 2)
    g.edata["half"] = torch.ones(g.num_edges(), dtype=torch.float16)
    for kind in ("prob", "mask"):
        for name, error, text in (
            ("no", ValueError, rf"^{kind}: expected the name of an array in g.edata .*, got 'no'"),
            ("two", ValueError, rf"^{kind}: expected a value for each edge, got g.edata\['two'\]"),
            ("half", TypeError, r"^g.edata\['half'\]: expected bool, integers, .*got float16"),
        ):
            with pytest.raises(error, match=text):
                PGSampler([3], **{kind: name}).sample(g, SEEDS)


def test_a_graph_on_a_gpu_gets_tables_of_the_cpu() -> None:
    """Checks, without a GPU, that tables are computed once for all devices that draw by them."""
    g = weighted()
    own = dgl_graph.graph_of(g, CPU)
    there = [pgs.Graph._later(own, 0, pinned) for pinned in (False, True)]
    placed = [dgl_graph.weighted_graph(g, each, "prob", "w") for each in there]
    assert [(each.device, each.pinned) for each in placed] == [("cuda:0", False), ("cuda:0", True)]
    (drawn,) = dgl_graph._cached_graph(g).drawn.values()
    for each in placed:
        inside = each._source._sampled_edges("prob", "w")
        assert inside._host is drawn.host._source
        assert (inside.device, inside.pinned) == (each.device, each.pinned)
    assert dgl_graph.weighted_graph(g, there[0], "prob", "w") is placed[0]
