"""Ranks of links among candidates: by hand, and compared with a slow reference."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import pygsampler as pgs  # noqa: E402
from pygsampler.evaluate import Ranks, rank  # noqa: E402

# Scores of pairs (row, column) that are whole numbers: sums are exact, in any order.
WIDTH = 6


def whole(rows: int, seed: int, dtype: Any = torch.float32, bound: int = 2) -> Any:
    random = torch.Generator().manual_seed(seed)
    return torch.randint(-bound, bound + 1, (rows, WIDTH), generator=random).to(dtype)


def edges(nodes: tuple[int, int], count: int, seed: int, dtype: Any = torch.int64) -> Any:
    random = torch.Generator().manual_seed(seed)
    ends = [torch.randint(0, n, (count,), generator=random) for n in nodes]
    return torch.stack(ends).to(dtype)


def slow(
    scores: Any, links: Any, candidates: Any, side: str, known: set[tuple[int, int]], ties: str
) -> tuple[list[float], list[int]]:
    """The definition, pair by pair; ``candidates`` has a list for each link."""
    score = [row.tolist() for row in scores.double()]
    ranks, counts = [], []
    for (u, v), nodes in zip(links.T.tolist(), candidates, strict=True):
        pairs = [(u, w) if side == "dst" else (w, v) for w in nodes]
        others = [pair for pair in pairs if pair != (u, v) and pair not in known]
        above = sum(score[a][b] > score[u][v] for a, b in others)
        equal = sum(score[a][b] == score[u][v] for a, b in others)
        part = {"mean": equal / 2, "optimistic": 0, "pessimistic": equal}[ties]
        ranks.append(1 + above + part)
        counts.append(len(others))
    return ranks, counts


def same(found: Ranks, expected: tuple[list[float], list[int]]) -> bool:
    return found.ranks.tolist() == expected[0] and found.num_candidates.tolist() == expected[1]


def test_by_hand() -> None:
    # Scores of 0 with 0 to 4: 1, 3, 2, 2, -1.
    x = torch.tensor([[1.0], [3.0], [2.0], [2.0], [-1.0]])
    links = torch.tensor([[0, 0, 0], [1, 2, 4]])
    found = rank(x, links)
    assert found.ranks.tolist() == [1, 2.5, 5]
    assert found.num_candidates.tolist() == [4, 4, 4]
    assert found.mrr == pytest.approx((1 + 0.4 + 0.2) / 3)
    assert found.mean_rank == pytest.approx(8.5 / 3)
    assert [found.hits(k) for k in (1, 2, 3, 5)] == pytest.approx([1 / 3, 1 / 3, 2 / 3, 1])
    assert found.auc == pytest.approx((1 + (2 + 0.5) / 4 + 0) / 3)
    assert rank(x, links, ties="optimistic").ranks.tolist() == [1, 2, 5]
    assert rank(x, links, ties="pessimistic").ranks.tolist() == [1, 3, 5]
    assert "mrr=0.5333" in repr(found)
    # 0 -> 1 is known, so that no other link of 0 is compared with it; 1 -> 0 says nothing of 0.
    graph = pgs.Graph.from_coo([0, 1], [1, 0], num_nodes=5)
    filtered = rank(x, links, filters=graph)
    assert filtered.ranks.tolist() == [1, 1.5, 4]
    assert filtered.num_candidates.tolist() == [4, 3, 3]


@pytest.mark.parametrize("chunk", [1, 2, 7, 40, 1000, None])
@pytest.mark.parametrize("side", ["src", "dst", "both"])
def test_as_the_definition_for_any_chunk(side: str, chunk: int | None) -> None:
    """With duplicates, self-loops, isolated nodes, high degrees, ties, and a link that is known."""
    nodes, sides = 23, ("src", "dst") if side == "both" else (side,)
    for seed in range(2):
        known = edges((nodes - 4, nodes - 4), 60, seed)
        known[1, :15] = 3  # many in-edges of one node, some of them several times
        known[0, 15:30] = 5
        links = torch.cat([known[:, 10:20], edges((nodes, nodes), 8, seed + 50)], 1)
        x = whole(nodes, seed)
        graph = pgs.Graph.from_coo(*known, num_nodes=nodes)
        pairs = set(map(tuple, known.T.tolist()))
        everyone = [range(nodes)] * links.shape[1]
        for ties in ("mean", "optimistic", "pessimistic"):
            for filters in (None, graph):
                found = rank(x, links, side=side, filters=filters, ties=ties, chunk=chunk)
                rows = torch.stack([found.ranks, found.num_candidates.double()], -1)
                rows = rows if side == "both" else rows.unsqueeze(0)
                for each, row in zip(sides, rows, strict=True):
                    expected = slow(
                        x @ x.T,
                        links,
                        everyone,
                        each,
                        pairs if filters else set(),
                        ties,
                    )
                    assert [row[:, 0].tolist(), row[:, 1].tolist()] == list(expected)


@pytest.mark.parametrize("ids", [torch.int32, torch.int64])
@pytest.mark.parametrize("chunk", [1, 9, None])
@pytest.mark.parametrize("side", ["src", "dst"])
def test_candidates_for_all_links_and_for_each(side: str, chunk: int | None, ids: Any) -> None:
    nodes = 30
    known, links = edges((nodes, nodes), 200, 1), edges((nodes, nodes), 25, 2, ids)
    x = whole(nodes, 3), whole(nodes, 4)
    graph, pairs = pgs.Graph.from_coo(*known, num_nodes=nodes), set(map(tuple, known.T.tolist()))
    shared = torch.randperm(nodes, generator=torch.Generator().manual_seed(5))[:11].to(ids)
    # The true end is among some, and nodes repeat.
    own = edges((nodes, nodes), 25 * 12, 6, ids)[0].view(25, 12)
    own[::3, 4] = links[int(side == "dst"), ::3]
    for candidates, lists in ((shared, [shared.tolist()] * 25), (own, own.tolist())):
        for filters in (None, graph):
            options: dict[str, Any] = {"side": side, "filters": filters, "chunk": chunk}
            found = rank(x, links, candidates=candidates, **options)
            expected = slow(
                x[0] @ x[1].T,
                links,
                lists,
                side,
                pairs if filters else set(),
                "mean",
            )
            assert same(found, expected)
            # A decoder and a function of ids are other ways to the same scores.
            by_rows = rank(
                x, links, candidates=candidates, decoder=lambda a, b: (a * b).sum(1), **options
            )
            assert same(by_rows, expected)
            by_ids = rank(
                lambda u, v: (x[0][u] * x[1][v]).sum(1, keepdim=True),
                links,
                candidates=candidates,
                **options,
            )
            assert same(by_ids, expected)


@pytest.mark.parametrize("chunk", [3, 50, None])
def test_a_decoder_of_training(chunk: int | None) -> None:
    """DistMult, as a function of rows and folded into one end, and a layer of torch's."""
    x, relation = whole(40, 1), whole(1, 2)[0]
    links = edges((40, 40), 15, 3)
    graph = pgs.Graph.from_coo(*edges((40, 40), 90, 4), num_nodes=40)
    for side in ("src", "dst", "both"):
        options: dict[str, Any] = {"side": side, "filters": graph, "chunk": chunk}
        folded = rank((x * relation, x), links, **options)
        decoded = rank(x, links, decoder=lambda a, b: (a * relation * b).sum(-1), **options)
        assert folded.ranks.equal(decoded.ranks)
        assert folded.num_candidates.equal(decoded.num_candidates)
    torch.manual_seed(0)
    bilinear = torch.nn.Bilinear(WIDTH, WIDTH, 1, bias=False)
    weight = whole(WIDTH, 5)
    bilinear.weight = torch.nn.Parameter(weight.unsqueeze(0))
    expected = rank((x @ weight, x), links)
    found = rank(x, links, decoder=bilinear, chunk=chunk)
    assert found.ranks.equal(expected.ranks)
    assert not found.ranks.requires_grad


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_dtypes(dtype: Any) -> None:
    x, links = whole(50, 1, dtype), edges((50, 50), 30, 2)
    expected = rank(x.double(), links).ranks
    assert rank(x, links).ranks.equal(expected)
    assert rank(x, links, candidates=torch.arange(50).expand(30, 50)).ranks.equal(expected)
    assert rank(lambda u, v: (x[u] * x[v]).sum(1), links, candidates=torch.arange(50)).ranks.equal(
        expected
    )


def test_rows_of_16_bits_are_multiplied_in_float32() -> None:
    # 256 + 1 and 256 are one number in bfloat16.
    x = torch.tensor([[16.0, 1.0], [16.0, 1.0], [16.0, 0.0]], dtype=torch.bfloat16)
    assert rank(x, [[0], [1]]).ranks.tolist() == [1.5]
    assert rank(x, [[0], [2]]).ranks.tolist() == [3]


def test_equal_rows_have_equal_scores() -> None:
    """Whatever the order of a product's sums: nodes with one row tie."""
    random = torch.Generator().manual_seed(1)
    x = torch.randn(50, 37, generator=random).repeat(6, 1)
    links = edges((300, 300), 40, 2)
    best, worst = (rank(x, links, ties=ties).ranks for ties in ("optimistic", "pessimistic"))
    assert (worst - best == 5).all()


def test_graphs_with_several_node_types() -> None:
    rates, sees = ("user", "rates", "film"), ("user", "sees", "film")
    known, more = edges((20, 9), 70, 1), edges((20, 9), 70, 2)
    graph = pgs.Graph.from_coo({rates: known, sees: more}, num_nodes={"user": 20, "film": 9})
    x = {"user": whole(20, 3), "film": whole(9, 4)}
    links = edges((20, 9), 12, 5)
    for name, ends in (("rates", known), ("sees", more)):
        pairs = set(map(tuple, ends.T.tolist()))
        for side, count in (("dst", 9), ("src", 20)):
            expected = slow(
                x["user"] @ x["film"].T,
                links,
                [range(count)] * 12,
                side,
                pairs,
                "mean",
            )
            assert same(rank(x, links, side=side, filters=graph, edge_type=name), expected)
            pair = x["user"], x["film"]
            found = rank(pair, links, side=side, filters=graph, edge_type=("user", name, "film"))
            assert same(found, expected)
    unfiltered = rank(x, links, edge_type=rates)
    assert unfiltered.num_candidates.tolist() == [8] * 12
    # A relation without edges rules nothing out.
    none = rank(x, links, edge_type=("user", "likes", "film"), filters=graph)
    assert none.ranks.equal(unfiltered.ranks)
    both = rank(x, links, edge_type=rates, filters=graph, side="both")
    assert both.ranks.shape == (2, 12)
    assert both.ranks[0].equal(rank(x, links, edge_type=rates, filters=graph, side="src").ranks)
    with pytest.raises(ValueError, match="node type 'film', got some for 'user'"):
        rank({"user": x["user"]}, links, edge_type=rates)


def test_several_graphs_of_known_edges() -> None:
    x, links = whole(25, 1), edges((25, 25), 10, 2)
    first, second = edges((25, 25), 80, 3), edges((25, 25), 80, 4)
    graphs = [pgs.Graph.from_coo(*each, num_nodes=25) for each in (first, second)]
    union = pgs.Graph.from_coo(*torch.cat([first, second], 1), num_nodes=25)
    found, expected = rank(x, links, filters=graphs), rank(x, links, filters=union)
    assert found.ranks.equal(expected.ranks)
    assert found.num_candidates.equal(expected.num_candidates)


@pytest.mark.parametrize("ids", [torch.int32, torch.int64])
def test_known_edges_of_a_graph_with_fewer_rows_than_nodes(ids: Any) -> None:
    # In-edges 2 -> 0, twice, and 1 -> 1; nodes from 2 on have no row.
    graph = pgs.Graph.from_csc(
        torch.tensor([0, 2, 3], dtype=ids), torch.tensor([2, 2, 1], dtype=ids), num_nodes=5
    )
    x, links = torch.ones(5, 1), torch.tensor([[2, 1, 4], [3, 2, 4]])
    assert rank(x, links, filters=graph).num_candidates.tolist() == [3, 3, 4]
    of_rows = torch.tensor([[3, 0, 4], [0, 1, 4]])
    assert rank(x, of_rows, side="src", filters=graph).num_candidates.tolist() == [3, 3, 4]


def test_arrays_of_numpy_and_lists() -> None:
    np = pytest.importorskip("numpy", reason="needs numpy")
    x, links = whole(12, 1), edges((12, 12), 7, 2)
    expected = rank(x, links).ranks
    assert rank(x.numpy(), links.numpy()).ranks.equal(expected)
    assert rank(x.numpy(), (links[0].tolist(), links[1].numpy())).ranks.equal(expected)
    assert rank(x, links, candidates=np.arange(12)).ranks.equal(expected)


def test_no_links_no_candidates_one_node() -> None:
    x = torch.ones(3, 2)
    empty = rank(x, torch.empty(2, 0, dtype=torch.int64))
    assert empty.ranks.shape == (0,)
    assert math.isnan(empty.mrr)
    assert rank(x, [[], []]).ranks.shape == (0,)
    for none in (torch.empty(0, dtype=torch.int64), torch.empty(2, 0, dtype=torch.int64)):
        found = rank(x, [[0, 1], [1, 2]], candidates=none)
        assert found.ranks.tolist() == [1, 1]
        assert found.num_candidates.tolist() == [0, 0]
        assert math.isnan(found.auc)
    single = rank(x[:1], [[0], [0]], filters=pgs.Graph.from_coo([0], [0]))
    assert (single.ranks.tolist(), single.num_candidates.tolist()) == ([1], [0])


def test_gradients_are_off_and_scores_are_not_written_to() -> None:
    x = whole(10, 1).requires_grad_()
    links = edges((10, 10), 4, 2)
    matrix = (x @ x.T).detach()
    before = matrix.clone()
    seen = []

    def score(u: Any, v: Any) -> Any:
        seen.append((x[u] * x[v]).sum().requires_grad)
        return matrix.flatten()[: len(u)]  # memory of the caller's

    rank(score, links, candidates=torch.arange(10))
    assert matrix.equal(before)
    assert seen
    assert not any(seen)
    assert not rank(x, links).ranks.requires_grad


@pytest.mark.parametrize("own", [False, True])
def test_chunk_bounds_the_pairs_of_a_call(own: bool) -> None:
    sizes: list[int] = []

    def score(u: Any, v: Any) -> Any:
        sizes.append(len(u))
        return (u * 31 + v).double()

    links, nodes = edges((90, 90), 33, 1), torch.arange(90)
    candidates = nodes.expand(33, 90) if own else nodes
    for chunk in (2, 64, 1000, 10**6):
        sizes.clear()
        rank(score, links, candidates=candidates, chunk=chunk)
        assert max(sizes) <= chunk
        assert sum(sizes) >= 33 * 90


def test_chunk_bounds_the_known_edges_of_a_block() -> None:
    from pygsampler.evaluate.edge_filter import EdgeFilter, filter_relations

    known = edges((50, 50), 600, 1)
    known[0, :200] = 7
    graph = pgs.Graph.from_coo(*known, num_nodes=50)
    links = edges((50, 50), 80, 2)
    rows = EdgeFilter(filter_relations(graph, None), tuple(links), 1, (50, 50))
    degrees = known[0].bincount(minlength=50)[links[0]]
    blocks = list(rows.blocks(16, 100))
    assert [i for each in blocks for i in range(each.start, each.stop)] == [*range(80)]
    for each in blocks:
        count = each.stop - each.start
        assert count <= 16
        assert count == 1 or degrees[each].sum() <= 100


def test_progress() -> None:
    calls: list[tuple[int, int]] = []
    x, links = whole(40, 1), edges((40, 40), 20, 2)
    rank(x, links, side="both", chunk=200, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (40, 40)
    assert len(calls) > 2
    assert calls == sorted(calls)


@pytest.mark.parametrize("where", [0, 1])
def test_nan_is_refused(where: int) -> None:
    """A comparison with NaN is false, which would make such a link the best of all."""
    x = whole(20, 1)
    x[9] = math.nan
    links = torch.tensor([[1, 2, 9][: 2 + where], [4, 5, 3][: 2 + where]])
    if not where:
        assert rank(x, links, candidates=torch.arange(9)).ranks.shape == (2,)
    with pytest.raises(ValueError, match=r"NaN for links\[:, 0\]"):
        rank(x, links)
    with pytest.raises(ValueError, match=r"NaN for links\[:, 1\]"):
        rank(x, [[1, 9], [4, 5]], candidates=torch.tensor([[2, 3], [2, 3]]))


def test_infinite_scores() -> None:
    x = torch.tensor([[1.0], [-math.inf], [-math.inf], [math.inf], [0.0]])
    links = torch.tensor([[0, 0], [1, 3]])
    graph = pgs.Graph.from_coo([0], [2], num_nodes=5)
    assert rank(x, links).ranks.tolist() == [4.5, 1]
    found = rank(x, links, filters=graph)
    assert found.ranks.tolist() == [4, 1]
    assert found.num_candidates.tolist() == [3, 3]


X, LINKS = torch.ones(5, 2), [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("error", "match", "arguments", "options"),
    [
        (ValueError, r"ties: expected one of mean", (X, LINKS), {"ties": "best"}),
        (ValueError, r"side: expected one of src", (X, LINKS), {"side": "head"}),
        (ValueError, r"chunk: expected an integer >= 1", (X, LINKS), {"chunk": 0}),
        (TypeError, r"chunk: expected an integer", (X, LINKS), {"chunk": 1.5}),
        (ValueError, r"links: expected shape \[2, links\], got 3", (X, [[0], [1], [2]]), {}),
        (ValueError, r"links: expected two rows of one length", (X, [[0], [1, 2]]), {}),
        (TypeError, r"links\[0\]: expected int32 or int64", (X, [[0.5], [1.0]]), {}),
        (IndexError, r"links\[1\]: expected node ids from 0 below 5, got 5", (X, [[0], [5]]), {}),
        (IndexError, r"links\[0\]: expected node ids from 0 below 5, got -1", (X, [[-1], [4]]), {}),
        (IndexError, r"candidates: expected node ids", (X, LINKS), {"candidates": [4, 5]}),
        (ValueError, r"candidates: expected each node at most", (X, LINKS), {"candidates": [1, 1]}),
        (ValueError, r"\[2, n\] with as many rows", (X, LINKS), {"candidates": [[1], [2], [3]]}),
        (TypeError, r"candidates: expected a pair", (X, LINKS), {"candidates": 1, "side": "both"}),
        (ValueError, r"embeddings: expected shape \[nodes, d\]", (X[0], LINKS), {}),
        (TypeError, r"embeddings: expected floats", (X.long(), LINKS), {}),
        (TypeError, r"embeddings: expected one dtype", ((X, X.double()), LINKS), {}),
        (ValueError, r"rows of one width", ((X, X[:, :1]), LINKS), {}),
        (ValueError, r"one array or a pair, got 3", ((X, X, X), LINKS), {}),
        (TypeError, r"embeddings: expected an array", ("x", LINKS), {}),
        (TypeError, r"edge_type: expected \(source", ({"a": X}, LINKS), {}),
        (ValueError, r"edge_type: expected None", (X, LINKS), {"edge_type": "cites"}),
        (ValueError, r"edge_type: expected None", (max, LINKS), {"edge_type": "cites"}),
        (TypeError, r"decoder: expected a function", (X, LINKS), {"decoder": 3}),
        (ValueError, r"decoder: expected None", (max, LINKS), {"decoder": max}),
        (ValueError, r"candidates: expected some with a function", (max, LINKS), {}),
        (TypeError, r"filters: expected a Graph", (X, LINKS), {"filters": LINKS}),
        (TypeError, r"progress: expected", (X, LINKS), {"progress": 3}),
        (
            ValueError,
            r"filters: expected a graph of 5 source and 5 destination nodes",
            (X, LINKS),
            {"filters": pgs.Graph.from_coo([0], [1])},
        ),
        (
            TypeError,
            r"scores: expected a tensor",
            (lambda u, v: 1.0, LINKS),
            {"candidates": [1]},
        ),
        (
            ValueError,
            r"scores: expected shape \[4\]",
            (lambda u, v: torch.ones(2), LINKS),
            {"candidates": [1]},
        ),
        (
            TypeError,
            r"scores: expected floats or integers, got torch.bool",
            (lambda u, v: u > v, LINKS),
            {"candidates": [1]},
        ),
    ],
)
def test_what_is_refused(error: Any, match: str, arguments: Any, options: dict[str, Any]) -> None:
    with pytest.raises(error, match=match):
        rank(*arguments, **options)
