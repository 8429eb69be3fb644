"""random_walk, node2vec_random_walk and pack_traces: the results and laws of DGL's."""

from __future__ import annotations

import gc
import math
import weakref
from typing import Any

import dgl
import pytest
import torch

from pygsampler.dgl import graph as dgl_graph
from pygsampler.dgl import node2vec_random_walk, pack_traces, random_walk
from tests.dgl.graphs import DTYPES, random_graph

PATH = ["follow", "view", "viewed-by"]


def triangle_with_a_tail() -> Any:
    """Undirected 0-1, 0-2, 1-2, 2-3, 3-4 with the weights 1 to 5."""
    u, v = torch.tensor([0, 0, 1, 2, 3]), torch.tensor([1, 2, 2, 3, 4])
    g = dgl.graph((torch.cat([u, v]), torch.cat([v, u])))
    g.edata["w"] = torch.arange(1.0, 6).repeat(2)
    return g


def users_and_items(dtype: torch.dtype = torch.int64, seed: int = 0) -> Any:
    """Three edge types between 60 users and 25 items, with parallel edges and dead ends."""
    random = torch.Generator().manual_seed(seed)

    def ids(most: int, count: int) -> torch.Tensor:
        return torch.randint(0, most, (count,), generator=random)

    g = dgl.heterograph(
        {
            ("user", "follow", "user"): (ids(55, 300), ids(60, 300)),
            ("user", "view", "item"): (ids(60, 200), ids(25, 200)),
            ("item", "viewed-by", "user"): (ids(25, 250), ids(60, 250)),
        },
        num_nodes_dict={"user": 60, "item": 25},
        idtype=dtype,
    )
    for etype in ("follow", "view"):
        weights = torch.rand(g.num_edges(etype), generator=random)
        g.edges[etype].data["w"] = torch.where(weights < 0.2, 0, weights)
    return g


def check_walks(
    g: Any,
    path: list[Any],
    nodes: torch.Tensor,
    result: tuple[torch.Tensor, ...],
    prob: str | None = None,
) -> None:
    """Everything that DGL promises of ``(traces, eids, types)``."""
    traces, eids, types = result
    assert traces.shape == (len(nodes), len(path) + 1) and eids.shape == (len(nodes), len(path))
    assert traces.dtype == eids.dtype == types.dtype == g.idtype
    assert traces.is_contiguous() and eids.is_contiguous()
    assert traces[:, 0].equal(nodes.to(g.idtype))
    for i, etype in enumerate(path):
        before, _, after = g.to_canonical_etype(etype)
        assert g.ntypes[types[i]] == before and g.ntypes[types[i + 1]] == after
        here, there, edge = traces[:, i], traces[:, i + 1], eids[:, i]
        going = there >= 0
        assert (edge >= 0).equal(going) and bool((here[going] >= 0).all())
        u, v = g.find_edges(edge[going], etype=etype)
        assert u.equal(here[going]) and v.equal(there[going])
        weights = torch.ones(g.num_edges(etype))
        if prob is not None and prob in g.edges[etype].data:
            weights = g.edges[etype].data[prob]
        assert bool((weights[edge[going].long()] > 0).all())
        # A walk ends only where no edge can be taken.
        src, _ = g.edges(etype=etype, order="eid")
        open_ends = torch.bincount(
            src.long(), weights=(weights > 0).double(), minlength=g.num_nodes(before)
        )
        ended = ~going & (here >= 0)
        assert bool((open_ends[here[ended].long()] == 0).all())


def fits(found: torch.Tensor, law: list[float]) -> None:
    """A chi-square test of ids against their probabilities, at about one in a million."""
    counts = torch.bincount(found.long(), minlength=len(law)).double()
    expected = torch.tensor(law, dtype=torch.float64) * len(found)
    assert len(counts) == len(law) and not counts[expected == 0].any()
    inside = expected > 0
    statistic = ((counts - expected)[inside] ** 2 / expected[inside]).sum()
    freedom = int(inside.sum()) - 1
    # Wilson and Hilferty's normal approximation of the tail.
    normal = (statistic / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))
    assert normal / math.sqrt(2 / (9 * freedom)) < 4.75


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("length", [0, 1, 7])
def test_walks_of_one_type(dtype: torch.dtype, length: int) -> None:
    g = random_graph(dtype=dtype)
    nodes = torch.arange(500, dtype=dtype).repeat(2)
    result = random_walk(g, nodes, length=length, return_eids=True)
    check_walks(g, g.etypes * length, nodes, result)
    assert (length == 0) == (not result[1].numel())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("prob", [None, "w"])
@pytest.mark.parametrize("path", [PATH, PATH * 30, ["follow"] * 5, ["view"]], ids=len)
def test_walks_along_a_metapath(dtype: torch.dtype, prob: str | None, path: list[str]) -> None:
    g = users_and_items(dtype)
    nodes = torch.arange(60, dtype=dtype).repeat(20)
    result = random_walk(g, nodes, metapath=path, prob=prob, return_eids=True)
    check_walks(g, path, nodes, result, prob)
    by_triple = [g.to_canonical_etype(etype) for etype in path]
    check_walks(
        g, path, nodes, random_walk(g, nodes, metapath=by_triple, prob=prob, return_eids=True), prob
    )


def test_walks_from_the_second_node_type() -> None:
    g = users_and_items()
    nodes = torch.arange(25)
    path = ["viewed-by", "view"] * 3
    check_walks(g, path, nodes, random_walk(g, nodes, metapath=path, return_eids=True))
    with pytest.raises(IndexError, match=r"nodes\[1\]: .* 'item' in \[0, 25\), got 30"):
        random_walk(g, [3, 30], metapath=path)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_same_as_dgl_where_there_is_one_way(dtype: torch.dtype) -> None:
    """On a path each walk is certain: values, dtypes, padding and edge ids are DGL's."""
    order = torch.randperm(9, generator=torch.Generator().manual_seed(0))
    src, dst = torch.arange(9)[order], torch.arange(1, 10)[order]
    g = dgl.graph((src, dst), idtype=dtype)
    g.edata["w"] = torch.ones(9)
    nodes = torch.tensor([0, 4, 9, 4], dtype=dtype)
    some: list[dict[str, Any]] = [
        {"length": 6},
        {"length": 6, "return_eids": True},
        {"length": 6, "prob": "w", "return_eids": True},
        {"metapath": g.etypes * 3, "return_eids": True},
        {"length": 3, "restart_prob": torch.tensor([0.0, 1, 0]), "return_eids": True},
        {"length": 3, "restart_prob": torch.ones(3)},
        {"length": 4, "restart_prob": 0.0},
    ]
    for options in some:
        ours = random_walk(g, nodes, **options)
        theirs = dgl.sampling.random_walk(g, nodes, **options)
        assert len(ours) == len(theirs)
        for mine, other in zip(ours, theirs, strict=True):
            assert mine.dtype == other.dtype and mine.equal(other)
    for p, q in ((1, 1), (0.5, 4)):
        mine = node2vec_random_walk(g, nodes, p, q, 5, return_eids=True)
        other = dgl.sampling.node2vec_random_walk(g, nodes, p, q, 5, return_eids=True)
        assert all(m.dtype == o.dtype and m.equal(o) for m, o in zip(mine, other, strict=True))
        assert node2vec_random_walk(g, nodes, p, q, 5, "w").equal(other[0])


@pytest.mark.parametrize("formats", ["coo", "csr", "csc"])
def test_every_format(formats: str) -> None:
    g = random_graph()
    nodes = torch.arange(500)
    result = random_walk(g.formats(formats), nodes, length=4, return_eids=True, seed=1)
    check_walks(g, g.etypes * 4, nodes, result)
    typed = users_and_items()
    result = random_walk(
        typed.formats(formats), torch.arange(60), metapath=PATH, return_eids=True, seed=1
    )
    check_walks(typed, PATH, torch.arange(60), result)


def test_laws() -> None:
    g = triangle_with_a_tail()
    zeros = torch.zeros(60_000, dtype=torch.int64)
    ends = random_walk(g, zeros, length=2, seed=1)[0][:, 2]
    fits(ends, [5 / 12, 1 / 6, 1 / 4, 1 / 6, 0])
    ends = random_walk(g, zeros, length=2, prob="w", seed=1)[0][:, 2]
    fits(ends, [25 / 108, 2 / 9, 1 / 4, 8 / 27, 0])


@pytest.mark.parametrize(
    ("p", "q", "prob", "law"),
    [
        (2, 0.5, None, [1, 2, 0, 4]),
        (2, 0.5, "w", [1, 3, 0, 8]),
        (0.25, 4, None, [16, 4, 0, 1]),
        (4, 0.25, None, [1, 4, 0, 16]),
        (1, 1, "w", [2, 3, 0, 4]),
    ],
)
def test_laws_of_node2vec(p: float, q: float, prob: str | None, law: list[int]) -> None:
    g = triangle_with_a_tail()
    zeros = torch.zeros(90_000, dtype=torch.int64)
    traces, eids = node2vec_random_walk(g, zeros, p, q, 2, prob, True, seed=2)
    check_walks(g, g.etypes * 2, zeros, (traces, eids, torch.zeros(3, dtype=torch.int64)))
    fits(traces[traces[:, 1] == 2, 2], [each / sum(law) for each in law])


def test_law_of_a_metapath() -> None:
    """Users a, b and items i, j, k with a-i, a-j, b-j, b-k: twice there and back from a."""
    users, items = [0, 0, 1, 1], [0, 1, 1, 2]
    g = dgl.heterograph(
        {("user", "buys", "item"): (users, items), ("item", "of", "user"): (items, users)}
    )
    zeros = torch.zeros(40_000, dtype=torch.int64)
    traces, types = random_walk(g, zeros, metapath=["buys", "of"] * 2, seed=3)
    fits(traces[:, 2], [3 / 4, 1 / 4])
    fits(traces[:, 4], [5 / 8, 3 / 8])
    assert [g.ntypes[t] for t in types] == ["user", "item", "user", "item", "user"]


@pytest.mark.parametrize("typed", [False, True])
def test_chances_to_end(typed: bool) -> None:
    ring = torch.arange(10)
    g = dgl.graph((ring, (ring + 1) % 10))
    how: dict[str, Any] = {"length": 3}
    if typed:
        g = dgl.heterograph(
            {("a", "ab", "b"): (ring, ring), ("b", "ba", "a"): (ring, (ring + 1) % 10)}
        )
        how = {"metapath": ["ab", "ba", "ab"]}
    nodes = torch.arange(10).repeat(6000)
    for chance, law in (
        (0.5, [1 / 2, 1 / 4, 1 / 8, 1 / 8]),
        (torch.full((3,), 0.5), [1 / 2, 1 / 4, 1 / 8, 1 / 8]),
        (torch.tensor([0, 0.25, 0.75]), [0, 1 / 4, 9 / 16, 3 / 16]),
        (torch.tensor([0.25, 0, 1], dtype=torch.float64), [1 / 4, 0, 3 / 4, 0]),
    ):
        result = random_walk(g, nodes, **how, restart_prob=chance, return_eids=True, seed=4)
        traces, eids, _ = result
        lengths = (eids >= 0).sum(1)
        assert lengths.equal((traces >= 0).sum(1) - 1)
        # Nothing follows an end.
        assert bool(((eids >= 0).int().diff(dim=1) <= 0).all())
        fits(lengths, law)
        again = random_walk(g, nodes, **how, restart_prob=chance, return_eids=True, seed=4)
        assert all(mine.equal(other) for mine, other in zip(result, again, strict=True))


def test_random_numbers() -> None:
    g = random_graph()
    nodes = torch.arange(400)

    def some() -> torch.Tensor:
        return random_walk(g, nodes, length=6)[0]

    torch.manual_seed(5)
    first, second = some(), some()
    other = node2vec_random_walk(g, nodes, 0.5, 2, 6)
    torch.manual_seed(5)
    assert some().equal(first)
    torch.manual_seed(6)
    third = some()
    torch.manual_seed(5)
    assert some().equal(first) and some().equal(second)
    assert node2vec_random_walk(g, nodes, 0.5, 2, 6).equal(other)
    assert not first.equal(second) and not first.equal(third)

    seeded = random_walk(g, nodes, length=6, seed=7)[0]
    assert random_walk(g, nodes, length=6, seed=7)[0].equal(seeded)
    assert not random_walk(g, nodes, length=6, seed=8)[0].equal(seeded)
    # Other nodes have numbers of their own, at the same places of a call too.
    state = torch.get_rng_state()
    swapped = torch.cat([nodes[:200], nodes[200:].flip(0)])
    assert not random_walk(g, swapped, length=6, seed=7)[0][:200].equal(seeded[:200])
    walks = node2vec_random_walk(g, nodes, 0.5, 2, 6, seed=7)
    assert node2vec_random_walk(g, nodes, 0.5, 2, 6, seed=7).equal(walks)
    random_walk(g, nodes, length=2, restart_prob=torch.tensor([0.1, 0.2]), seed=7)
    assert torch.get_rng_state().equal(state), "calls with a seed leave torch's generator alone"


class Walking(torch.utils.data.Dataset[torch.Tensor]):
    def __init__(self, g: Any) -> None:
        self.g = g

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> torch.Tensor:
        return random_walk(self.g, torch.arange(300), length=5)[0]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_workers() -> None:
    """Workers walk differently from one another and from pass to pass; torch's seed repeats it."""
    g = random_graph()

    def batches() -> list[torch.Tensor]:
        loader = torch.utils.data.DataLoader(Walking(g), batch_size=None, num_workers=2)
        return list(loader)

    torch.manual_seed(3)
    found = batches() + batches()
    assert len({tuple(each.flatten().tolist()) for each in found}) == 8
    torch.manual_seed(3)
    assert all(mine.equal(other) for mine, other in zip(found, batches(), strict=False))


@pytest.mark.parametrize("typed", [False, True])
def test_weights_as_they_are(typed: bool) -> None:
    """Checks that a write to a tensor, or another tensor in its place, counts in the next call."""
    g = users_and_items() if typed else random_graph()
    path = PATH if typed else g.etypes * 3
    etype = path[0]
    g.edges[etype].data["w"] = torch.rand(g.num_edges(etype))
    nodes = torch.arange(50).repeat(20)

    def taken() -> torch.Tensor:
        result = random_walk(g, nodes, metapath=path, prob="w", return_eids=True)
        check_walks(g, path, nodes, result, "w")
        first = result[1][:, 0]
        return first[first >= 0].unique()

    everything = taken()
    g.edges[etype].data["w"][everything[::2]] = 0
    assert not torch.isin(taken(), everything[::2]).any()
    g.edges[etype].data["w"] = torch.ones(g.num_edges(etype))
    assert torch.isin(everything[::2], taken()).any()
    if not typed:
        g.edata["w"][everything[::3]] = 0
        for p, q in ((1, 1), (0.5, 2)):
            traces, eids = node2vec_random_walk(g, nodes, p, q, 3, "w", True)
            check_walks(g, path, nodes, (traces, eids, torch.zeros(4, dtype=torch.int64)), "w")


def test_forgotten_with_the_graph_and_its_weights() -> None:
    g = users_and_items()
    random_walk(g, [0], metapath=PATH, prob="w")
    random_walk(g, [0], metapath=["follow"] * 2)
    keys = [key for key in dgl_graph._graphs if key[0] == id(g._graph)]
    assert sorted(len(types) for _, types in keys) == [1, 3]
    taken = dgl_graph._graphs[max(keys, key=lambda key: len(key[1]))]
    assert len(taken.drawn) == 1
    own = weakref.ref(taken.own)
    drawn = weakref.ref(next(iter(taken.drawn.values())).host)
    g.edges["follow"].data["w"] = torch.ones(300)
    gc.collect()
    assert not taken.drawn and drawn() is None
    random_walk(g, [0], metapath=PATH, prob="w")
    assert len(taken.drawn) == 1
    del g, taken
    gc.collect()
    assert own() is None and not any(key in dgl_graph._graphs for key in keys)


def test_what_weights_do_not_change_is_made_once() -> None:
    g = random_graph()
    random_walk(g, [0], length=1)
    plain = dgl_graph.graph_of(g, torch.device("cpu"))._source._walked("out")
    for _ in range(2):
        g.edata["w"] = torch.rand(g.num_edges()) + 0.1
        random_walk(g, [0], length=1, prob="w")
        drawn = dgl_graph.walk_graph(g, torch.device("cpu"), "w")._source._walked("out", "w")
        assert drawn.indices.torch().data_ptr() == plain.indices.torch().data_ptr()


def test_packed() -> None:
    traces = torch.tensor([[4, 1, -1, -1], [2, 3, 0, 5], [-1, -1, -1, -1], [7, -1, -1, -1]])
    types = torch.tensor([0, 1, 0, 1])
    for dtype in DTYPES:
        given = traces.to(dtype), types.to(dtype)
        ours, theirs = pack_traces(*given), dgl.sampling.pack_traces(*given)
        for mine, other in zip(ours, theirs, strict=True):
            assert mine.dtype == other.dtype and mine.equal(other)
    # Walks that all go on to the end, in rows and in columns; and ids behind an end, which go.
    whole, gap = torch.arange(12).view(4, 3), torch.tensor([[2, -1, 5], [-1, 1, 0]])
    for given in (whole, whole.t(), gap, gap.t().contiguous().t()):
        before, places = given.clone(), torch.arange(given.shape[1])
        ours, theirs = pack_traces(given, places), dgl.sampling.pack_traces(given, places)
        assert all(mine.equal(other) for mine, other in zip(ours, theirs, strict=True))
        ours[0].zero_()
        assert given.equal(before)
    ids, kinds, lengths, offsets = pack_traces(traces[:0], types)
    assert not (ids.numel() or kinds.numel() or lengths.numel() or offsets.numel())
    g = users_and_items()
    walks, kinds = random_walk(g, torch.arange(60), metapath=PATH * 4)
    ids, each, lengths, _ = pack_traces(walks, kinds)
    for row, part, of in zip(
        walks, ids.split(lengths.tolist()), each.split(lengths.tolist()), strict=True
    ):
        assert part.equal(row[row >= 0]) and of.equal(kinds[: len(part)])


def test_lists_and_no_nodes() -> None:
    g = random_graph()
    assert random_walk(g, [3, 4], length=2)[0][:, 0].tolist() == [3, 4]
    assert random_walk(g, torch.tensor([3, 4], dtype=torch.int32), length=2)[0].dtype == g.idtype
    for nodes in ([], torch.empty(0, dtype=torch.int64)):
        traces, eids, types = random_walk(g, nodes, length=2, return_eids=True)
        assert traces.shape == (0, 3) and eids.shape == (0, 2) and types.tolist() == [0] * 3
        assert node2vec_random_walk(g, nodes, 0.5, 2, 2).shape == (0, 3)


WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "node": ({"nodes": [0, 500]}, IndexError, r"nodes\[1\]: expected an id in \[0, 500\), got 500"),
    "negative": ({"nodes": [-1]}, IndexError, r"nodes\[0\]: expected an id"),
    "dtype": ({"nodes": [0.5]}, TypeError, "nodes: expected int32 or int64 ids"),
    "shape": ({"nodes": torch.zeros(2, 2).long()}, ValueError, "nodes: expected a 1-D tensor"),
    "neither": ({"length": None}, ValueError, "length: expected a number of steps, or a metapath"),
    "length": ({"length": -1}, ValueError, "length: expected an integer from 0"),
    "string": ({"metapath": "_E", "length": None}, TypeError, "metapath: expected a list"),
    "empty": ({"metapath": [], "length": None}, ValueError, "metapath: expected at least one"),
    "prob": ({"prob": "x"}, ValueError, r"prob: .*\('weight', 'wide'\), got 'x'"),
    "tensor": ({"prob": torch.ones(4000)}, TypeError, "prob: expected the name"),
    "wide": ({"prob": "wide"}, dgl.DGLError, "prob: expected .* of one dimension"),
    "chance": ({"restart_prob": 1.0}, dgl.DGLError, r"restart_prob: .* in \[0, 1\), got 1.0"),
    "integer": ({"restart_prob": 1}, TypeError, "restart_prob: expected a float or a tensor"),
    "few": ({"restart_prob": torch.zeros(2)}, ValueError, "one for each of 3 steps"),
    "nan": (
        {"restart_prob": torch.tensor([0, math.nan, 0])},
        ValueError,
        r"restart_prob\[1\]: expected a number in \[0, 1\], got nan",
    ),
}


@pytest.mark.parametrize("length", [None, 0, 3, -1, "many"])
def test_a_length_beside_a_metapath_is_ignored_as_in_dgl(length: Any) -> None:
    g, nodes = random_graph(), torch.arange(20)
    options: dict[str, Any] = {"metapath": ["_E"] * 2}
    theirs = dgl.sampling.random_walk(g, nodes, length=length, **options)
    got = random_walk(g, nodes, length=length, seed=3, **options)
    assert [each.shape for each in got] == [each.shape for each in theirs]
    assert got[0].equal(random_walk(g, nodes, seed=3, **options)[0])


@pytest.mark.parametrize(("given", "kind", "text"), WRONG.values(), ids=WRONG)
def test_mistakes(given: dict[str, Any], kind: type[Exception], text: str) -> None:
    g = random_graph()
    g.edata["wide"] = torch.ones(4000, 1)
    arguments = {"nodes": [0], "length": 3, **given}
    with pytest.raises(kind, match=text):
        random_walk(g, arguments.pop("nodes"), **arguments)


def test_mistakes_that_dgl_refuses_too() -> None:
    g, typed = random_graph(), users_and_items()
    for walk in (
        lambda: random_walk(g, [500], length=1),
        lambda: node2vec_random_walk(g, [500], 1, 1, 1),
        lambda: random_walk(typed, [0], length=1),
        lambda: random_walk(typed, [0], metapath=["view", "view"]),
        lambda: random_walk(typed, [0], metapath=["none"]),
    ):
        with pytest.raises(dgl.DGLError):
            walk()
    with pytest.raises(TypeError, match=r"g: expected a dgl.DGLGraph, got int 3"):
        random_walk(3, [0], length=1)
    with pytest.raises(ValueError, match="p: expected a number above 0"):
        node2vec_random_walk(g, [0], 0, 1, 3)
    with pytest.raises(ValueError, match=r"prob: .* got 'x'"):
        node2vec_random_walk(g, [0], 1, 1, 3, "x")
    with pytest.raises(ValueError, match=r"prob: .* \('w'\), got 'x'"):
        random_walk(typed, [0], metapath=PATH, prob="x")


def test_a_weight_that_is_none() -> None:
    g = users_and_items()
    g.edges["view"].data["w"][7] = -1
    with pytest.raises(ValueError, match=r"'view', 'item'\)\]\.data\['w'\]\[7\]: .*got -1"):
        random_walk(g, [0], metapath=PATH, prob="w")
    # The same call works once the weight is right.
    g.edges["view"].data["w"][7] = 0
    random_walk(g, [0], metapath=PATH, prob="w")
    plain = random_graph()
    plain.edata["w"] = torch.full((4000,), math.inf)
    with pytest.raises(ValueError, match=r"edata\['w'\]"):
        random_walk(plain, [0], length=1, prob="w")


def test_not_offered() -> None:
    g = users_and_items()
    with pytest.raises(NotImplementedError, match="homogeneous graph for node2vec"):
        node2vec_random_walk(g, [0], 1, 1, 3)
    path = ["follow"] * 70 + ["view"]
    with pytest.raises(NotImplementedError, match="at most 64 steps, or a pattern"):
        random_walk(g, [0], metapath=path)
    block = dgl.to_block(random_graph())
    with pytest.raises(NotImplementedError, match="got a block"):
        random_walk(block, [0], metapath=["_E"])
