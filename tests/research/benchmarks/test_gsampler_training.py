"""The benchmark of training by programs runs, and its batches are those of both samplers."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from partners import partner

torch = partner("torch")
pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.research.gsampler_training")


def test_both_systems_train(training: Any, tmp_path: Path) -> None:
    assert training.main(["--quick", "--out", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "gsampler_training.json").read_text())["rows"]
    assert {(row["algorithm"], row["sampler"], row["seed"]) for row in rows} == {
        (algorithm, sampler, seed)
        for algorithm in ("GraphSAGE", "LADIES")
        for sampler in ("torch", "pygsampler")
        for seed in (0, 1)
    }
    assert all(row["seconds"] > 0 and row["sampling"] > 0 for row in rows)


@pytest.mark.parametrize("algorithm", ["GraphSAGE", "LADIES"])
@pytest.mark.parametrize("system", ["torch", "pygsampler"])
def test_hops_are_edges_of_the_graph_with_destinations_first(
    training: Any, algorithm: str, system: str
) -> None:
    options = training._parser().parse_args(["--batch", "64", "--nodes", "100"])
    task = training.planted(500)
    dst = torch.arange(500).repeat_interleave(torch.from_dlpack(task.graph.indptr).diff())
    edges = set(zip(torch.from_dlpack(task.graph.indices).tolist(), dst.tolist(), strict=True))
    batches = list(training.Sampling(task, options).batches(algorithm, system, 1, 0))
    assert (
        torch.cat([seeds for _, seeds, _ in batches]).sort().values.equal(task.train.sort().values)
    )
    for inputs, seeds, hops in batches:
        assert inputs[: len(seeds)].equal(seeds)
        assert len(inputs.unique()) == len(inputs)
        for src, to, weight, count in hops:
            found = zip(inputs[src].tolist(), inputs[to].tolist(), strict=True)
            assert set(found) <= edges
            assert int(to.max()) < count
            sums = torch.zeros(count).index_add(0, to, weight)
            assert torch.allclose(sums[to.unique()], torch.ones(len(to.unique())), atol=1e-5)


def test_systems_that_train_differently_are_refused(
    training: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measure(sampling: Any, name: str, algorithm: str, system: str, seed: int) -> dict[str, Any]:
        accuracy = 0.9 + 0.001 * seed - 0.02 * (system == "torch")
        return {"sampler": system, "seconds": 1.0, "accuracy": [accuracy]}

    monkeypatch.setattr(training, "measure", measure)
    assert training.main(["--quick"]) == 1
    assert "far from each other as is allowed" in capsys.readouterr().err
