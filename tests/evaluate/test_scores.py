"""Measures from scores: by hand, OGB's formulas, and the evaluators of OGB and PyG."""

from __future__ import annotations

import math
from typing import Any

import pytest
from partners import partner

torch = pytest.importorskip("torch", reason="needs torch")

import pygsampler as pgs  # noqa: E402
from pygsampler.evaluate import hits_at, rank, rank_scores  # noqa: E402


def scores(links: int, count: int, seed: int) -> tuple[Any, Any]:
    """Scores with many ties."""
    random = torch.Generator().manual_seed(seed)
    return (
        torch.randint(0, 9, (links,), generator=random).float(),
        torch.randint(0, 9, (links, count), generator=random).float(),
    )


def test_ranks_by_hand() -> None:
    positive = torch.tensor([0.9, 0.5, 0.1, 0.5])
    negative = torch.tensor([[0.1, 0.8, 0.3], [0.5, 0.7, 0.5], [0.1, 0.1, 0.1], [0.4, 0.6, 0.9]])
    found = rank_scores(positive, negative)
    assert found.ranks.tolist() == [1, 3, 2.5, 3]
    assert rank_scores(positive, negative, ties="optimistic").ranks.tolist() == [1, 2, 1, 3]
    assert rank_scores(positive, negative, ties="pessimistic").ranks.tolist() == [1, 4, 4, 3]
    assert found.num_candidates.tolist() == [3] * 4
    assert found.mrr == pytest.approx((1 + 1 / 3 + 1 / 2.5 + 1 / 3) / 4)
    assert (found.hits(1), found.hits(2), found.hits(3)) == (0.25, 0.25, 1)
    assert found.auc == pytest.approx((1 + 1 / 3 + 1 / 2 + 1 / 3) / 4)


def test_hits_at_by_hand() -> None:
    negative = torch.tensor([0.1, 0.7, 0.7, 0.3])
    positive = torch.tensor([0.9, 0.7, 0.5, 0.2])
    # The best negatives are 0.7, 0.7, 0.3, 0.1; a tie with the k-th is no hit.
    assert [hits_at(positive, negative, k) for k in (1, 2, 3, 4)] == [0.25, 0.25, 0.75, 1]
    assert hits_at(positive, negative, 5) == 1
    assert hits_at(positive, negative[:0], 1) == 1


def test_ranks_are_those_of_the_formulas_of_ogb() -> None:
    """Optimistic and pessimistic ranks, and their mean, as the evaluator computes them."""
    for links, count in ((40, 17), (1, 1), (3, 1200)):
        positive, negative = scores(links, count, links)
        own = positive.view(-1, 1)
        best, worst = (negative > own).sum(1), (negative >= own).sum(1)
        expected = 0.5 * (best + worst) + 1
        found = rank_scores(positive, negative)
        assert found.ranks.equal(expected.double())
        assert found.mrr == pytest.approx(float((1 / expected).mean()))
        for k in (1, 3, 10):
            assert found.hits(k) == pytest.approx(float((expected <= k).float().mean()))


@pytest.mark.parametrize("k", [1, 3, 10, 50])
def test_the_evaluator_of_ogb(k: int) -> None:
    evaluators = partner("ogb.linkproppred")
    positive, negative = scores(80, 50, k)
    evaluator = evaluators.Evaluator(name="ogbl-collab")
    evaluator.K = k
    pool = negative.flatten()[:30]
    found = evaluator.eval({"y_pred_pos": positive, "y_pred_neg": pool})
    assert hits_at(positive, pool, k) == pytest.approx(found[f"hits@{k}"])
    by_links = evaluators.Evaluator(name="ogbl-citation2")
    lists = by_links.eval({"y_pred_pos": positive, "y_pred_neg": negative})
    ranks = rank_scores(positive, negative)
    assert ranks.mrr == pytest.approx(float(lists["mrr_list"].mean()))
    assert ranks.hits(3) == pytest.approx(float(lists["hits@3_list"].mean()))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_the_metrics_of_pyg() -> None:
    """MRR and precision of ranked lists, of links that each have a source of their own."""
    metrics = partner("torch_geometric.metrics")
    random = torch.Generator().manual_seed(1)
    users, items = (torch.randn(n, 16, generator=random) for n in (30, 45))
    known = torch.stack([torch.randint(0, n, (200,), generator=random) for n in (30, 45)])
    links = torch.stack([torch.arange(30), torch.randint(0, 45, (30,), generator=random)])
    table = users @ items.T
    truth = table[links[0], links[1]]
    table[known[0], known[1]] = -math.inf
    table[links[0], links[1]] = truth
    order = table.argsort(1, descending=True)
    buys = ("user", "buys", "item")
    graph = pgs.Graph.from_coo({buys: known}, num_nodes={"user": 30, "item": 45})
    found = rank((users, items), links, filters=graph, edge_type=buys)
    mrr = metrics.LinkPredMRR(k=45)
    mrr.update(order, links)
    assert found.mrr == pytest.approx(float(mrr.compute()))
    for k in (1, 5, 20):
        recall = metrics.LinkPredRecall(k=k)
        recall.update(order[:, :k], links)
        assert found.hits(k) == pytest.approx(float(recall.compute()))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_the_knowledge_graphs_of_pyg() -> None:
    """``KGEModel.test`` of DistMult, whose ranks count from 0."""
    kge = partner("torch_geometric.nn.kge")
    torch.manual_seed(0)
    model = kge.DistMult(num_nodes=60, num_relations=1, hidden_channels=16)
    heads, tails = torch.randint(0, 60, (2, 20))
    mean_rank, mrr, hits = model.test(
        heads, torch.zeros_like(heads), tails, batch_size=64, k=10, log=False
    )
    x = model.node_emb.weight
    found = rank((x * model.rel_emb.weight, x), (heads, tails))
    assert found.mean_rank == pytest.approx(mean_rank + 1)
    assert found.mrr == pytest.approx(mrr)
    assert found.hits(10) == pytest.approx(hits)


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.int64]
)
def test_dtypes(dtype: Any) -> None:
    positive, negative = scores(60, 20, 1)
    expected = rank_scores(positive, negative).ranks
    assert rank_scores(positive.to(dtype), negative.to(dtype)).ranks.equal(expected)
    assert hits_at(positive.to(dtype), negative[0].to(dtype), 4) == hits_at(
        positive, negative[0], 4
    )


def test_arrays_of_numpy_and_gradients() -> None:
    positive, negative = scores(30, 12, 2)
    expected = rank_scores(positive, negative).ranks
    assert rank_scores(positive.numpy(), negative.numpy()).ranks.equal(expected)
    assert rank_scores(positive.tolist(), negative.tolist()).ranks.equal(expected)
    trained = positive.clone().requires_grad_(), negative.clone().requires_grad_()
    assert not rank_scores(*trained).ranks.requires_grad
    assert hits_at(positive.numpy(), negative[0].numpy(), 3) == hits_at(positive, negative[0], 3)


def test_many_scores_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    from pygsampler.evaluate import ranks

    positive, negative = scores(37, 50, 3)
    expected = rank_scores(positive, negative)
    monkeypatch.setattr(ranks, "EXACT", 7)
    monkeypatch.setattr(ranks, "_CHUNK", 120)
    found = rank_scores(positive, negative)
    assert found.ranks.equal(expected.ranks)
    assert found.num_candidates.equal(expected.num_candidates)


def test_no_links_and_no_negatives() -> None:
    assert math.isnan(rank_scores(torch.ones(0), torch.ones(0, 5)).mrr)
    alone = rank_scores(torch.ones(2), torch.ones(2, 0))
    assert alone.ranks.tolist() == [1, 1]
    assert alone.num_candidates.tolist() == [0, 0]


ONE, TWO = torch.ones(2), torch.ones(2, 3)
NAN = torch.tensor([1.0, math.nan])


@pytest.mark.parametrize(
    ("error", "match", "call"),
    [
        (ValueError, "ties: expected one of", lambda: rank_scores(ONE, TWO, ties="all")),
        (ValueError, r"positive: expected shape \[n\]", lambda: rank_scores(TWO, TWO)),
        (ValueError, r"negative: expected shape \[links, n\]", lambda: rank_scores(ONE, ONE)),
        (ValueError, "negative: expected 1 rows", lambda: rank_scores(ONE[:1], TWO)),
        (TypeError, "positive: expected floats or", lambda: rank_scores(ONE.bool(), TWO)),
        (TypeError, "negative: expected floats", lambda: rank_scores(ONE, TWO.to(torch.cfloat))),
        (TypeError, "positive: expected an array", lambda: rank_scores("ab", TWO)),
        (ValueError, "positive: expected numbers, got NaN", lambda: rank_scores(NAN, TWO)),
        (ValueError, "negative: .* NaN", lambda: rank_scores(ONE, NAN.expand(2, 2))),
        (ValueError, "positive: .* NaN", lambda: hits_at(NAN, ONE, 1)),
        (ValueError, "negative: .* NaN", lambda: hits_at(ONE, NAN, 1)),
        (ValueError, "positive: expected at least one", lambda: hits_at(ONE[:0], ONE, 1)),
        (ValueError, r"negative: expected shape \[n\]", lambda: hits_at(ONE, TWO, 1)),
        (ValueError, "k: expected an integer >= 1", lambda: hits_at(ONE, ONE, 0)),
        (ValueError, "k: expected an integer >= 1", lambda: rank_scores(ONE, TWO).hits(0)),
        (TypeError, "k: expected an integer >= 1", lambda: rank_scores(ONE, TWO).hits(0.5)),
    ],
)
def test_what_is_refused(error: Any, match: str, call: Any) -> None:
    with pytest.raises(error, match=match):
        call()
