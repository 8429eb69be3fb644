"""The benchmark of R-GAT runs on the CPU, in as many processes as it has GPUs elsewhere."""

from __future__ import annotations

import importlib
import json
import tempfile
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from partners import partner

import pygsampler as pgs
from tests.support.interpreter import PYG, prepared

torch = partner("torch")
from pygsampler.torch import DataLoader  # noqa: E402

pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    return lambda name: importlib.import_module(f"benchmarks.rgat.{name}")


def test_sizes_are_those_of_igbh(module: Any) -> None:
    sizes = module("igbh").Sizes.at(1.0)
    published = ("paper", "author", "institute", "fos")
    assert sum(sizes.nodes[kind] for kind in published) == 547_306_935
    relations = ("cites", "written_by", "affiliated_to", "topic")
    counted = {name: count for (_, name, _), count in sizes.edges.items()}
    assert sum(counted[name] for name in relations) == 5_812_005_639


def test_a_graph_has_citations_both_ways_and_each_relation_its_reverse(module: Any) -> None:
    igbh = module("igbh")
    sizes = igbh.Sizes.at(2e-6)
    graph = igbh.generate(sizes, "cpu")
    assert dict(graph.num_nodes) == sizes.nodes

    def edges(kind: tuple[str, str, str]) -> list[tuple[int, int]]:
        relation = graph[kind]
        indptr, indices = relation.indptr.numpy(), relation.indices.numpy()
        rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        return sorted(zip(indices.tolist(), rows.tolist(), strict=True))

    for (src, name, dst), count in sizes.edges.items():
        forth = edges((src, name, dst))
        back = edges((src, name, dst) if src == dst else (dst, f"rev_{name}", src))
        assert len(forth) == (2 * count if src == dst else count)
        assert sorted((b, a) for a, b in forth) == back
    again = igbh.generate(sizes, "cpu")
    cites = ("paper", "cites", "paper")
    assert again[cites].indices.numpy().tobytes() == graph[cites].indices.numpy().tobytes()


def test_edges_are_sorted_by_ranges_of_their_targets(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    igbh = module("igbh")
    random = torch.Generator().manual_seed(1)
    edges = [
        tuple(torch.randint(50, (300,), dtype=torch.int32, generator=random) for _ in range(2))
        for _ in range(2)
    ]
    indptr, indices = igbh._csc(edges, 60)
    # Smaller than the edges into some of the targets.
    monkeypatch.setattr(igbh, "_CHUNK", 8)
    again = igbh._csc(edges, 60)
    assert again[0].equal(indptr)
    assert again[1].equal(indices)


def test_rows_of_features_fill_the_memory_that_is_asked_for(module: Any) -> None:
    main, igbh = module("__main__"), module("igbh")
    for gigabytes, gpus in ((40, 1), (40, 8)):
        rows = igbh.Sizes.at(main.scale_for(gigabytes, gpus)).rows
        assert rows * 1028 == pytest.approx(gigabytes * gpus * 1e9, rel=1e-4)
    # All of IGBH-Full is the most.
    assert main.scale_for(140, 8) == pytest.approx(1.0)


def test_layers_have_the_relations_that_reach_a_paper(module: Any) -> None:
    model, igbh = module("model"), module("igbh")
    edge_types = igbh.generate(igbh.Sizes.at(2e-6), "cpu").edge_types
    first, middle, last = model.relations_of_layers(edge_types)
    assert {dst for _, _, dst in last} == {"paper"}
    assert ("institute", "rev_affiliated_to", "author") in middle
    assert ("institute", "rev_affiliated_to", "author") not in last
    assert set(first) == set(edge_types)


def test_sums_that_are_projected_are_sums_of_projected_rows(module: Any) -> None:
    model, igbh = module("model"), module("igbh")
    graph = igbh.generate(igbh.Sizes.at(2e-6), "cpu")
    sampler = pgs.PGSampler((5, 3), seed=1)
    loader = DataLoader(graph, {"paper": torch.arange(20)}, sampler, batch_size=20)
    batch = next(iter(loader))
    block = batch.blocks[0]["author", "rev_written_by", "paper"]
    relation = model.Relation(6, 8).double()
    ends = block.num_src_nodes, block.num_dst_nodes
    x = torch.randn(ends[0], 6, dtype=torch.float64)
    scores = [torch.randn(n, 4, dtype=torch.float64, requires_grad=True) for n in ends]
    expected = block.attention(relation.project(x).unflatten(1, (4, -1)), *scores).flatten(1)
    got = relation.aggregated(block, x, *scores)
    torch.testing.assert_close(got, expected)
    assert block.num_edges > 0
    by = torch.randn_like(got)
    for of in (*scores, relation.project.weight):
        grads = [torch.autograd.grad(y, of, by, retain_graph=True)[0] for y in (got, expected)]
        assert grads[1].any()
        torch.testing.assert_close(*grads)


def test_relations_of_few_edges_project_sums(module: Any) -> None:
    model = module("model")
    few = types.SimpleNamespace(num_edges=10, num_dst_nodes=5, num_src_nodes=100)
    assert model.aggregates_first(few, torch.zeros(100, 2))
    assert not model.aggregates_first(few, torch.zeros(100, 2, requires_grad=True))
    few.num_edges = 180
    assert not model.aggregates_first(few, torch.zeros(100, 2))


def forks(settings: dict[str, Any], world: int, timeout: float, name: str) -> list[dict[str, Any]]:
    """Stands in for ``processes``, each of which would import torch and torch._dynamo again."""
    code = f"import runpy; runpy.run_module({name!r}, run_name='__main__', alter_sys=True)"
    with tempfile.TemporaryDirectory() as scratch:
        shared = {**settings, "world": world, "meeting": f"{scratch}/meeting"}
        words = [[json.dumps({**shared, "rank": rank})] for rank in range(world)]
        run = prepared(*PYG).run_together
        ends = run(code, Path(scratch), words, [{}] * world, timeout=timeout)
    assert not any(end.returncode for end in ends), "\n".join(end.stderr for end in ends)
    return [json.loads(line) for line in ends[0].stdout.splitlines() if line.startswith("{")]


@pytest.mark.parametrize("gpus", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_processes_train(
    module: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, gpus: int
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(module("__main__"), "processes", forks)
    command = ["--gpus", str(gpus), "--device", "cpu", "--trial", "--out", str(tmp_path)]
    assert module("__main__").main(command) == 0
    content = json.loads((tmp_path / "rgat.json").read_text())
    assert [(row["gpus"], row["batch"]) for row in content["rows"]] == [(gpus, 16), (gpus, 32)]
    for row in content["rows"]:
        assert row["edges"] > 1000
        assert 0 < row["sampling_ms"] < row["step_ms"]
    kept = [json.loads(line) for line in (tmp_path / "rgat.jsonl").read_text().splitlines()]
    assert kept == content["rows"]
