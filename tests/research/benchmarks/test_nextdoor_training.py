"""Table 5 of NextDoor: the steps of the papers' programs draw what they should, and it trains."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from partners import partner

torch = partner("torch")
partner("scipy")
pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.research.nextdoor_training")


def replaced(training: Any, *arguments: str) -> Any:
    options = training._parser().parse_args(["--batch", "64", "--nodes", "100", *arguments])
    return training.Replaced(training.gsampler_training.planted(500), options)


def test_all_algorithms_train(training: Any, tmp_path: Path) -> None:
    assert training.main(["--quick", "--out", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "nextdoor_training.json").read_text())["rows"]
    assert {(row["algorithm"], row["sampler"], row["seed"]) for row in rows} == {
        (algorithm, sampler, seed)
        for algorithm in training.ALGORITHMS
        for sampler in training.SYSTEMS
        for seed in (0, 1)
    }


@pytest.mark.parametrize("system", ["vanilla", "pygsampler"])
@pytest.mark.parametrize("algorithm", ["GraphSAGE", "FastGCN", "LADIES", "ClusterGCN"])
def test_hops_are_edges_of_the_graph(training: Any, algorithm: str, system: str) -> None:
    sampling = replaced(training)
    graph = sampling.task.graph
    dst = torch.arange(500).repeat_interleave(torch.from_dlpack(graph.indptr).diff())
    edges = set(zip(torch.from_dlpack(graph.indices).tolist(), dst.tolist(), strict=True))
    trained = sampling.task.train.sort().values
    batches = list(sampling.batches(algorithm, system, 1, 0))
    assert torch.cat([seeds for _, seeds, _ in batches]).sort().values.equal(trained)
    for inputs, seeds, hops in batches:
        assert inputs[: len(seeds)].equal(seeds)
        assert hops[-1][3] == len(seeds)
        for src, to, _, count in hops:
            found = zip(inputs[src].tolist(), inputs[to].tolist(), strict=True)
            assert set(found) <= edges
            assert int(to.max()) < count


@pytest.mark.parametrize("algorithm", ["GraphSAGE", "LADIES"])
def test_weights_are_those_of_a_mean(training: Any, algorithm: str) -> None:
    for _, _, hops in replaced(training).batches(algorithm, "vanilla", 1, 0):
        for _, to, weight, count in hops:
            sums = torch.zeros(count).index_add(0, to, weight)
            assert torch.allclose(sums[to.unique()], torch.ones(len(to.unique())), atol=1e-5)


def test_sums_of_fastgcn_are_unbiased(training: Any) -> None:
    sampling, random = replaced(training), np.random.default_rng(3)
    x, frontier = random.random(500), np.array([3, 77, 200])
    want, found = sampling._weights[frontier] @ x, []
    for _ in range(600):
        nodes, (src, dst, weight, _) = sampling._columns_of_matrix("FastGCN", frontier, random)
        found.append(np.bincount(dst, weight.numpy() * x[nodes[src]], minlength=3))
    error = np.std(found, axis=0) / len(found) ** 0.5
    assert (np.abs(np.mean(found, axis=0) - want) < 4 * error).all()
    assert (error > 0).all()


def test_both_make_the_same_batches_of_clusters(training: Any) -> None:
    sampling = replaced(training)
    # Each node has a cluster, and all clusters but the last are full.
    assert np.bincount(sampling.parts).tolist() == [training.CLUSTER, 500 - training.CLUSTER]
    for (a, s, left), (b, t, right) in zip(
        sampling.batches("ClusterGCN", "vanilla", 2, 1),
        sampling.batches("ClusterGCN", "pygsampler", 2, 1),
        strict=True,
    ):
        assert set(s.tolist()) == set(t.tolist())

        def edges(nodes: Any, hop: Any) -> list[tuple[int, int, float]]:
            src, to, weight, _ = hop
            parts = nodes[src].tolist(), nodes[to].tolist(), weight.tolist()
            return sorted(zip(*parts, strict=True))

        for one, other in zip(left, right, strict=True):
            assert edges(a, one) == edges(b, other)
