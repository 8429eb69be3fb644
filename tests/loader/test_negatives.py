"""Vertices that are drawn beside links: the rule in plain Python, laws, and arguments."""

from __future__ import annotations

import itertools
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import reference
import torch
from sampler_laws import plausible

import pygsampler as pgs
from pygsampler.torch import NegativeSampling
from tests.gpu import run_with_driver

NODES = 12
# Parallel edges, a loop, a vertex with edges to all others but one, and vertices without in-edges
# or out-edges; the last vertices have no row.
EDGES = [(0, 1), (0, 1), (0, 5), (2, 2), (2, 3), (5, 0), (5, 0), (5, 0), (8, 9), (9, 8), (3, 1)]
EDGES += [(7, v) for v in range(NODES) if v not in (7, 4)]
NUMBERS: dict[str, int] = {"seed": (1 << 64) - 7, "epoch": 3, "batch": 1 << 35}


def graph(dtype: torch.dtype = torch.int64, edges: list[tuple[int, int]] = EDGES) -> pgs.Graph:
    src, dst = torch.tensor(edges, dtype=dtype).T.contiguous()
    return pgs.Graph.from_coo(src, dst, num_nodes=NODES)


def allowed(u: int) -> list[int]:
    return [w for w in range(NODES) if w != u and (u, w) not in EDGES]


def table_of(power: float) -> list[tuple[int, int]]:
    """3/4 as the roots that the table takes."""
    degrees = [max(sum(v == w for _, v in EDGES), 1) for w in range(NODES)]
    weights = [d**0.5 * (d**0.5) ** 0.5 if power == 0.75 else float(d) for d in degrees]
    return reference.alias_table(reference.integers(weights))


def slow(kind: str, src: list[int], dst: list[int], amount: int, power: float) -> list[list[int]]:
    """By the words of docs/developer/walk-draws.md."""
    rows = []
    for place, u in enumerate(src):
        known = NUMBERS["seed"], NUMBERS["epoch"], NUMBERS["batch"], 2, place
        state = reference.row_state(*known, reference.NEGATIVES)
        row = []
        for k in range(amount):
            x = reference.draw(state, k, 1 << 64)
            if kind == "structural":
                others = allowed(u)
                row.append(others[(x >> 2) * len(others) >> 62])
            elif kind == "in_batch" and len(dst) > 1:
                row.append(dst[(place + 1 + (x * (len(dst) - 1) >> 64)) % len(dst)])
            elif kind == "degree" and power:
                slot, coin = x * NODES >> 64, (x * NODES & reference.MASK64) >> 32
                own, other = table_of(power)[slot]
                row.append(slot if coin < own else other)
            else:
                row.append(x * NODES >> 64)
        rows.append(row)
    return rows


def cases() -> list[tuple[str, dict[str, Any]]]:
    by_degree = [("degree", {"power": power}) for power in (0, 0.75, 1)]
    return [("uniform", {}), ("in_batch", {}), ("structural", {}), *by_degree]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize(("kind", "options"), cases())
def test_the_rule(kind: str, options: dict[str, Any], dtype: torch.dtype) -> None:
    g = graph(dtype)
    for amount, edges in ((1, EDGES), (4, EDGES * 9), (3, EDGES[-1:]), (2, [])):
        src, dst = torch.tensor(edges, dtype=dtype).reshape(-1, 2).T.contiguous()
        made = NegativeSampling(kind, amount, **options).draw(g, src, dst, **NUMBERS)
        assert made.dtype == dtype
        assert made.shape == (len(edges), amount)
        power = options.get("power", 0.75)
        assert made.tolist() == slow(kind, src.tolist(), dst.tolist(), amount, power)


@pytest.mark.parametrize("power", [0, 0.75, 1])
def test_law_by_degree(power: float) -> None:
    degrees = [max(sum(v == w for _, v in EDGES), 1) ** power for w in range(NODES)]
    law = {w: d / sum(degrees) for w, d in enumerate(degrees)}
    plausible(drawn("degree", 5, power=power), law)


def test_law_of_uniform() -> None:
    plausible(drawn("uniform", 5), dict.fromkeys(range(NODES), 1 / NODES))


@pytest.mark.parametrize("vertex", [0, 2, 5, 11])
def test_law_of_non_edges(vertex: int) -> None:
    """Of parallel edges, of a loop, of a vertex without edges."""
    others = allowed(vertex)
    plausible(drawn("structural", vertex), dict.fromkeys(others, 1 / len(others)))


def test_the_only_non_edge() -> None:
    assert drawn("structural", 7) == {4: 10_000}


def drawn(kind: str, vertex: int, **options: Any) -> Counter[int]:
    src = torch.full((2000,), vertex)
    return Counter(
        NegativeSampling(kind, 5, **options).draw(graph(), src, src, seed=1).flatten().tolist()
    )


def test_law_within_a_batch() -> None:
    """No place draws itself, and each other place is equally likely."""
    places = torch.arange(7)
    counts: Counter[tuple[int, int]] = Counter()
    for batch in range(2000):
        made = NegativeSampling("in_batch").draw(graph(), places, places, seed=1, batch=batch)
        counts.update(enumerate(made.flatten().tolist()))
    plausible(counts, {(u, w): 1 / 42 for u in range(7) for w in range(7) if u != w})


def test_no_edge_is_drawn_of_a_larger_graph() -> None:
    random = torch.Generator().manual_seed(1)
    edges = torch.randint(0, 300, (2, 40_000), generator=random)
    g = pgs.Graph.from_coo(edges[0], edges[1], num_nodes=300)
    made = NegativeSampling("structural", 5).draw(g, edges[0], edges[1], seed=1)
    src = edges[0].repeat_interleave(5)
    assert not torch.isin(src * 300 + made.flatten(), edges[0] * 300 + edges[1]).any()
    assert not (src == made.flatten()).any()
    # Each pair that is no edge comes up: of 53 thousand, for 200 thousand draws, nearly all.
    assert len(torch.unique(src * 300 + made.flatten())) > 45_000


def test_a_vertex_joined_to_all() -> None:
    g = graph(edges=[(3, v) for v in range(NODES) if v != 3] + [(1, 2)])
    fine = torch.tensor([1, 2])
    assert NegativeSampling("structural").draw(g, fine, fine, seed=0).shape == (2, 1)
    full = torch.tensor([1, 3])
    with pytest.raises(ValueError, match="got 3, from which edges lead to all 11 others"):
        NegativeSampling("structural").draw(g, full, full, seed=0)


def test_what_is_kept_goes_with_the_graph() -> None:
    g = graph()
    two = torch.tensor([0, 1])
    wanted = NegativeSampling("structural").draw(g, two, two, seed=0)
    (key,) = g._source._derived
    kept = g._source._derived[key]
    assert NegativeSampling("structural", 1).draw(g, two, two, seed=0).equal(wanted)
    assert g._source._derived[key] is kept
    again = pickle.loads(pickle.dumps(g))
    assert NegativeSampling("structural").draw(again, two, two, seed=0).equal(wanted)
    g.close()
    with pytest.raises(pgs.errors.ClosedError):
        NegativeSampling("structural").draw(g, two, two, seed=0)


# Of the vertices' times, in no order and with ties.
TIMES = [5, 1, 4, 1, 9, 2, 2, 0, 3, 7, 4, 1]
WEIGHT = [0.0, 1, 2.5, 0, 3, 1, 0.25, 7, 1, 1, 0, 2]


def timed(dtype: torch.dtype = torch.int64) -> pgs.Graph:
    src, dst = torch.tensor(EDGES).T.contiguous()
    times = {"t": torch.tensor(TIMES).to(dtype)}
    return pgs.Graph.from_coo(src, dst, num_nodes=NODES, node_data=times)


def earlier(bound: float, of: Any = range(NODES)) -> list[int]:
    """In the order of time, as ties stand."""
    return sorted((w for w in of if TIMES[w] <= bound), key=lambda w: (TIMES[w], w))


def drawn_at(kind: str, vertex: int, bound: float, **options: Any) -> Counter[int]:
    src = torch.full((2000,), vertex)
    law = NegativeSampling(kind, 5, time_attr="t", **options)
    made = law.draw(timed(), src, src, seed=1, seed_time=torch.full((2000,), bound))
    return Counter(made.flatten().tolist())


def test_law_by_weight() -> None:
    law = {w: x / sum(WEIGHT) for w, x in enumerate(WEIGHT)}
    plausible(drawn("uniform", 5, dst_weight=WEIGHT), law)
    plausible(drawn("uniform", 5, dst_weight=torch.tensor(WEIGHT) * 1e-30), law)


def test_the_rule_by_weight_and_time() -> None:
    """By the words of docs/developer/walk-draws.md, each edge with a time of its own."""
    # Edges of 7 lead to all that are there before the end.
    src, dst = torch.tensor([edge for edge in EDGES if edge[0] != 7] * 5).T.contiguous()
    bound = torch.arange(len(src)) % 9 + 1
    for kind, weight in (("uniform", None), ("uniform", WEIGHT), ("structural", None)):
        for float_ in (False, True):
            g = timed(torch.float64 if float_ else torch.int64)
            law = NegativeSampling(kind, 4, time_attr="t", dst_weight=weight)
            when = bound.double() if float_ else bound
            made = law.draw(g, src, dst, seed_time=when, **NUMBERS).tolist()
            for place, row in enumerate(made):
                known = NUMBERS["seed"], NUMBERS["epoch"], NUMBERS["batch"], 2, place
                state = reference.row_state(*known, reference.NEGATIVES)
                of = allowed(int(src[place])) if kind == "structural" else range(NODES)
                there = earlier(int(bound[place]), of)
                for k, w in enumerate(row):
                    x = reference.draw(state, k, 1 << 64)
                    if weight is None:
                        assert w == there[(x >> 2) * len(there) >> 62]
                        continue
                    reach = list(itertools.accumulate(WEIGHT[v] for v in there))
                    at = (x >> 11) / 2**53 * reach[-1]
                    assert w == there[sum(r <= at for r in reach)]


@pytest.mark.parametrize("bound", [1, 4, 100])
def test_laws_at_a_time(bound: int) -> None:
    there = earlier(bound)
    plausible(drawn_at("uniform", 5, bound), dict.fromkeys(there, 1 / len(there)))
    heavy = {w: WEIGHT[w] / sum(WEIGHT[v] for v in there) for w in there}
    plausible(drawn_at("uniform", 5, bound, dst_weight=WEIGHT), heavy)
    others = earlier(bound, allowed(5))
    plausible(drawn_at("structural", 5, bound), dict.fromkeys(others, 1 / len(others)))


def test_law_within_a_batch_at_a_time() -> None:
    """Others of the batch that are there, all equally likely; else any vertex that is."""
    dst = torch.tensor([0, 1, 4, 9, 7])
    bound = torch.tensor([5, 1, 9, 6, 0])
    counts: list[Counter[int]] = [Counter() for _ in dst]
    law = NegativeSampling("in_batch", 4, time_attr="t")
    for batch in range(2000):
        made = law.draw(timed(), dst, dst, seed=1, batch=batch, seed_time=bound)
        for count, row in zip(counts, made.tolist(), strict=True):
            count.update(row)
    for place, when in enumerate(bound.tolist()):
        rest = [w for at, w in enumerate(dst.tolist()) if at != place]
        there = earlier(when, rest) or earlier(when)
        if len(there) == 1:
            assert set(counts[place]) == set(there)
        else:
            plausible(counts[place], dict.fromkeys(there, 1 / len(there)))


def test_sources_of_their_own() -> None:
    """Drawn by weight, and what stands beside them is no neighbour of theirs."""
    src = torch.full((2000,), 5)
    law = NegativeSampling("structural", 5, src_weight=WEIGHT)
    sources, made = law.draw_pairs(graph(), src, src, seed=1)
    plausible(
        Counter(sources.flatten().tolist()), {w: x / sum(WEIGHT) for w, x in enumerate(WEIGHT)}
    )
    pairs = Counter(zip(sources.flatten().tolist(), made.flatten().tolist(), strict=True))
    assert all(w in allowed(u) for u, w in pairs)
    for u in (2, 11):
        own = {w: n for (v, w), n in pairs.items() if v == u}
        plausible(own, dict.fromkeys(allowed(u), 1 / len(allowed(u))))
    alone, other = NegativeSampling("uniform", 2).draw_pairs(graph(), src, src, seed=1)
    assert (alone == 5).all()
    assert other.equal(NegativeSampling("uniform", 2).draw(graph(), src, src, seed=1))


def test_nothing_is_there() -> None:
    one = torch.tensor([3])
    with pytest.raises(ValueError, match="expected nodes that are there at time -1, got none"):
        NegativeSampling(time_attr="t").draw(timed(), one, one, seed=0, seed_time=one - 4)
    with pytest.raises(ValueError, match="nodes of positive weight that are there at time 0"):
        law = NegativeSampling(time_attr="t", dst_weight=[0.0] * 11 + [1])
        law.draw(timed(), one, one, seed=0, seed_time=one * 0)
    with pytest.raises(ValueError, match="got 7, from which edges lead to all that are there"):
        drawn_at("structural", 7, 1)


def test_wrong_weights_and_times() -> None:
    for given, text in (
        ([1.0, -1], r"dst_weight\[1\]: expected a finite number >= 0, got -1"),
        ([float("nan")], r"dst_weight\[0\]: expected a finite number"),
        ([0.0], "dst_weight: expected a finite sum above 0"),
        ([[1.0]], r"dst_weight: expected a weight for each node, got shape \(1, 1\)"),
    ):
        with pytest.raises(ValueError, match=text):
            NegativeSampling(dst_weight=given)
    with pytest.raises(TypeError, match="src_weight: expected an array of numbers"):
        NegativeSampling(src_weight="x")
    with pytest.raises(ValueError, match="dst_weight: expected None with kind 'degree'"):
        NegativeSampling("degree", dst_weight=WEIGHT)
    with pytest.raises(ValueError, match="src_weight: expected None with mode 'triplet'"):
        NegativeSampling(src_weight=WEIGHT, mode="triplet")
    with pytest.raises(ValueError, match="time_attr: expected None with kind 'degree'"):
        NegativeSampling("degree", time_attr="t")
    with pytest.raises(TypeError, match="time_attr: expected the name of a node array"):
        NegativeSampling(time_attr=3)  # type: ignore[arg-type]
    one = torch.tensor([0])
    with pytest.raises(ValueError, match="dst_weight: expected a weight for each of 12 nodes"):
        NegativeSampling(dst_weight=[1.0]).draw(graph(), one, one, seed=0)
    with pytest.raises(ValueError, match=r"time_attr: expected the name of an array .* got 'u'"):
        NegativeSampling(time_attr="u").draw(timed(), one, one, seed=0, seed_time=one)
    draw = NegativeSampling(time_attr="t").draw
    with pytest.raises(ValueError, match="seed_time: expected a time for each edge"):
        draw(timed(), one, one, seed=0)
    with pytest.raises(TypeError, match="seed_time: expected integers"):
        draw(timed(), one, one, seed=0, seed_time=one.float())
    with pytest.raises(ValueError, match=r"seed_time: expected a tensor of shape \[1\]"):
        draw(timed(), one, one, seed=0, seed_time=torch.tensor([0, 1]))
    nan = torch.tensor([float("nan")])
    with pytest.raises(ValueError, match="seed_time: expected numbers, got NaN"):
        draw(timed(torch.float64), one, one, seed=0, seed_time=nan)
    with pytest.raises(ValueError, match="edge_type: expected None for a homogeneous graph"):
        NegativeSampling().draw(graph(), one, one, seed=0, edge_type=("a", "b", "c"))


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match=r"kind: expected one of uniform, .*got 'other'"):
        NegativeSampling("other")
    with pytest.raises(TypeError, match="kind: expected a string"):
        NegativeSampling(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="amount: expected"):
        NegativeSampling(amount=0)
    with pytest.raises(ValueError, match="mode: expected one of binary, triplet"):
        NegativeSampling(mode="both")
    with pytest.raises(ValueError, match="power: expected None with kind 'uniform'"):
        NegativeSampling(power=0.5)
    with pytest.raises(ValueError, match=r"power: expected a number in \[0, 1\], got 2"):
        NegativeSampling("degree", power=2)
    one, two = torch.tensor([0]), torch.tensor([0, 1])
    draw = NegativeSampling().draw
    with pytest.raises(TypeError, match="graph: expected"):
        draw(None, one, one, seed=0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="src: expected an int32 or int64 tensor"):
        draw(graph(), one.float(), one, seed=0)
    with pytest.raises(TypeError, match=r"dst: expected torch.int64 on cpu as src"):
        draw(graph(), one, one.int(), seed=0)
    with pytest.raises(ValueError, match="dst: expected 1 nodes as src, got 2"):
        draw(graph(), one, two, seed=0)
    with pytest.raises(ValueError, match="src: expected shape"):
        draw(graph(), one.view(1, 1), one, seed=0)
    with pytest.raises(ValueError, match="negatives: expected an epoch"):
        draw(graph(), one, one, seed=0, epoch=-1)


def test_texts_and_pickles() -> None:
    assert (
        repr(NegativeSampling("degree", 2))
        == "NegativeSampling('degree', 2, mode='binary', power=0.75)"
    )
    made = pickle.loads(pickle.dumps(NegativeSampling("structural", 3, mode="triplet")))
    assert repr(made) == "NegativeSampling('structural', 3, mode='triplet')"
    law = NegativeSampling(dst_weight=WEIGHT, src_weight=WEIGHT, time_attr="t")
    wanted = (
        "NegativeSampling('uniform', 1, mode='binary', dst_weight=[12], src_weight=[12], "
        "time_attr='t')"
    )
    assert repr(pickle.loads(pickle.dumps(law))) == repr(law) == wanted


# Torch does not take the emulator for a GPU. Its memory is the host's, so tensors on the host
# stand in for those of a device.
CODE = """
import torch
import pygsampler as pgs
from pygsampler._loader import candidate_pool as pool, rng as draws
from pygsampler.torch import NegativeSampling

there = False
draws.device_of = lambda x: 0 if there else -1
pool.CandidatePool.on = lambda self, index: self._on[-1]
draws.devices.current_stream = lambda index: 0
draws._address = lambda by, index: by.table._address
for dtype in (torch.int64, torch.int32):
    edges = torch.randint(0, 500, (2, 3000)).to(dtype)
    g = pgs.Graph.from_coo(*edges, num_nodes=510)
    for kind in ("uniform", "degree", "in_batch", "structural"):
        made = []
        for there in (False, True):
            made.append(NegativeSampling(kind, 7).draw(g, *edges, seed=5, epoch=2, batch=9))
        assert made[0].equal(made[1]), kind
    g = pgs.Graph.from_coo(*edges, num_nodes=510, node_data={"t": torch.arange(510) % 50})
    w = torch.arange(510.0)
    for law in (
        NegativeSampling("uniform", 7, time_attr="t", dst_weight=w, src_weight=w),
        NegativeSampling("structural", 7, time_attr="t", src_weight=w),
        NegativeSampling("in_batch", 7, time_attr="t"),
    ):
        made = []
        for there in (False, True):
            when = torch.arange(3000) % 49
            pairs = law.draw_pairs(g, *edges, seed=5, epoch=2, batch=9, seed_time=when)
            made.append(torch.stack(pairs))
        assert made[0].equal(made[1]) and made[0].dtype == dtype, law
print("same")
"""


def test_numbers_of_a_gpu(emulator: Path) -> None:
    assert run_with_driver(emulator, CODE) == "same\n"
