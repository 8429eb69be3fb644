"""The benchmarks run, and they refuse to show times of a sampler that loses edges."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("graphs")


@pytest.fixture(autouse=True)
def _private_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYGSAMPLER_CACHE", str(cache))
    monkeypatch.syspath_prepend(str(ROOT))


PARTS = ("cache", "graphs", "pipeline", "report", "scaling", "training_step", "weights")


@pytest.fixture
def bench(_private_cache: None, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The modules; no round is repeated because the test machine is busy."""
    shared = [f"pygsampler._cli.bench.{name}" for name in ("check", "compare", "contenders")]
    own = [f"benchmarks.{name}" for name in PARTS]
    modules = [importlib.import_module(name) for name in (*shared, *own)]
    found = SimpleNamespace(**{module.__name__.rpartition(".")[2]: module for module in modules})
    monkeypatch.setattr(found.compare.OtherLoad, "share", lambda self: 0.0)
    return found


@pytest.fixture
def graph(bench: SimpleNamespace) -> Any:
    return bench.graphs.load("quick")


class Exact:
    """A slow sampler in NumPy that keeps every law; the tests spoil its batches."""

    label = "NumPy"
    overlaps = False
    frontier = "all"

    def __init__(self, bench: SimpleNamespace, name: str = "exact", spoil: Any = None) -> None:
        self.name = name
        self._bench = bench
        self._spoil = spoil

    def open(self, graph: Any, fanouts: Sequence[int], seed: int) -> Exact:
        self._graph, self._fanouts = graph, fanouts
        self._rng = np.random.default_rng(seed)
        self._calls = 0
        return self

    def run(self, batches: Sequence[np.ndarray], epoch: int) -> Iterator[Any]:
        for seeds in batches:
            blocks: list[Any] = []
            for fanout in reversed(self._fanouts):
                blocks.insert(0, self._block(blocks[0].src if blocks else seeds, fanout))
            if self._spoil:
                blocks = self._spoil(blocks, self._calls)
            self._calls += 1
            yield blocks

    def edges(self, batch: Any) -> list[int]:
        return [len(block.eid) for block in batch]

    def views(self, batch: Any) -> list[Any]:
        return list(batch)

    def _block(self, dst: np.ndarray, fanout: int) -> Any:
        ends = self._graph.indptr[np.stack([dst, dst + 1])].T
        picks = [
            np.arange(lo, hi)
            if fanout == -1 or hi - lo <= fanout
            else lo + self._rng.choice(hi - lo, fanout, replace=False)
            for lo, hi in ends
        ]
        row = np.repeat(np.arange(len(dst)), [len(pick) for pick in picks])
        eid = np.concatenate(picks)
        new = np.setdiff1d(self._graph.indices[eid], dst)
        src = np.concatenate([dst, new])
        place = np.zeros(self._graph.num_nodes, np.int64)
        place[src] = np.arange(len(src))
        col = place[self._graph.indices[eid]]
        return self._bench.check.CheckedBlock(dst, src, row, col, eid)


def changed(block: Any, **arrays: Any) -> Any:
    return type(block)(**{**vars(block), **arrays})


def without_edges(block: Any, keep: slice) -> Any:
    return changed(block, row=block.row[keep], col=block.col[keep], eid=block.eid[keep])


SMALL = {"rounds": 3, "batches": 4}


@pytest.mark.parametrize(("seconds", "rounds"), [(0.0, 3), (1e6, 5), (None, 5)])
def test_rounds_end_with_the_time(
    bench: SimpleNamespace, graph: Any, seconds: float | None, rounds: int
) -> None:
    setting = bench.compare.Setting(16, (3,))
    (row,) = bench.compare.compare(
        graph, setting, [Exact(bench)], seconds=seconds, rounds=5, batches=2
    )
    assert row.rounds == rounds


@pytest.mark.parametrize("shape", ["quick", "physics", "arxiv"])
def test_generated_graph_has_the_shape_of_its_name(bench: SimpleNamespace, shape: str) -> None:
    want = bench.graphs.SHAPES[shape]
    made = bench.graphs.load(shape)
    assert (made.num_nodes, made.num_edges) == (want.nodes, want.edges)
    assert made.indptr.dtype == made.indices.dtype == np.int64
    degree = np.diff(made.indptr)
    assert made.indptr[0] == 0 and degree.min() >= 0 and made.indptr[-1] == want.edges
    assert made.indices.min() >= 0 and made.indices.max() < want.nodes
    assert degree.max() > 20 * np.median(degree)  # a power law, not a random graph
    popularity = np.sort(np.bincount(made.indices, minlength=want.nodes))
    assert popularity[-want.nodes // 10 :].sum() > 0.25 * want.edges


def test_graph_is_the_same_from_the_cache_and_made_again(bench: SimpleNamespace) -> None:
    first = bench.graphs.load("quick", np.int32)
    indptr, indices = bench.graphs.generate(bench.graphs.SHAPES["quick"], 1)
    assert first.indices.dtype == np.int32
    np.testing.assert_array_equal(first.indptr, indptr)
    np.testing.assert_array_equal(first.indices, indices)
    other = bench.graphs.load("quick", np.int32, seed=2)
    assert (other.indices != indices).any()


@pytest.mark.parametrize(("name", "dtype"), [("nowhere", "int64"), ("quick", "float32")])
def test_bad_graph_is_named(bench: SimpleNamespace, name: str, dtype: str) -> None:
    with pytest.raises(ValueError, match=r"expected .*, got"):
        bench.graphs.load(name, dtype)


def test_setting_is_parsed_and_written(bench: SimpleNamespace) -> None:
    parse = bench.compare.Setting.parse
    assert str(parse("1024x5,10,15")) == str(parse("1024x(5, 10, 15)")) == "1024x(5,10,15)"
    assert parse("1x-1").fanouts == (-1,)
    for text in ("1024", "0x10", "1024x", "1024x10,", "x10"):
        with pytest.raises(ValueError, match=r"setting: expected"):
            parse(text)


def test_right_samplers_are_compared(bench: SimpleNamespace, graph: Any) -> None:
    pool = [Exact(bench, "dgl"), Exact(bench, "second")]
    ticks: list[int] = []
    setting = bench.compare.Setting(16, (5, -1, 3))
    rows = bench.compare.compare(
        graph, setting, pool, tick=lambda: ticks.append(1), rounds=5, batches=4
    )
    assert [row.contender for row in rows] == ["dgl", "second"]
    assert len(ticks) == rows[0].rounds == 5
    assert rows[0].ratio.median == 1
    for row in rows:
        assert 0 < row.milliseconds.best <= row.milliseconds.median
        assert row.edges_per_second == pytest.approx(
            row.edges_per_batch / row.milliseconds.median * 1e3
        )
        assert row.label in bench.report.line(row) and row.label in bench.report.table(rows)


def test_rounds_beside_other_processes_are_repeated(
    bench: SimpleNamespace, graph: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares = iter([1.0, 0.0, 1.0, 0.0] + [0.0] * 5)  # busy, idle: round one, disturbed; and so on
    monkeypatch.setattr(bench.compare.OtherLoad, "share", lambda self: next(shares))
    pool = [Exact(bench, "dgl")]
    (row,) = bench.compare.compare(graph, bench.compare.Setting(8, (2,)), pool, **SMALL, wait=60)
    assert (row.rounds, row.disturbed) == (3, 0)
    checked_and_warm = 3 + SMALL["batches"] + 1
    assert pool[0]._calls == checked_and_warm + (1 + row.rounds) * SMALL["batches"]
    assert next(shares, None) is None


def test_disturbed_rounds_are_told(
    bench: SimpleNamespace, graph: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench.compare.OtherLoad, "share", lambda self: 1.0)
    setting = bench.compare.Setting(8, (2,))
    (row,) = bench.compare.compare(graph, setting, [Exact(bench, "dgl")], **SMALL, wait=0.5)
    assert (row.rounds, row.disturbed) == (3, 3)
    assert "3 of 3 rounds next to other busy processes" in bench.report.line(row)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/stat")
def test_load_of_others_is_seen(_private_cache: None) -> None:
    others = importlib.import_module("benchmarks.environment").OtherLoad()
    spin = "import time\nend = time.monotonic() + 1\nwhile time.monotonic() < end: pass"
    subprocess.run([sys.executable, "-c", spin], check=True)
    assert 0.3 / (os.cpu_count() or 1) < others.share() <= 1.1
    assert others.share() == 0  # too short to tell


def lose_from_second_call(blocks: list[Any], call: int) -> list[Any]:
    """What DGL's fused sampler does to int32 graphs."""
    return blocks if call == 0 else [without_edges(blocks[0], slice(None, None, 2)), *blocks[1:]]


def lose_an_edge_of_the_seeds_later(blocks: list[Any], call: int) -> list[Any]:
    """Right while it is checked edge by edge, wrong by one edge under the clock."""
    return [*blocks[:-1], without_edges(blocks[-1], slice(1, None))] if call == 9 else blocks


def lose_deep_edges_later(blocks: list[Any], call: int) -> list[Any]:
    """Right at the seeds, where counts are exact, a tenth short beyond them."""
    short = slice(len(blocks[0].eid) // 10, None)
    return [without_edges(blocks[0], short), *blocks[1:]] if 3 <= call < 3 + 4 + 12 else blocks


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lose_from_second_call, "expected .* edges for .* rows, got"),
        (lose_an_edge_of_the_seeds_later, "edges at the seeds"),
        (lose_deep_edges_later, r"lossy has .* edges a batch, dgl .*expected a difference"),
    ],
)
def test_lost_edges_are_refused(bench: SimpleNamespace, graph: Any, spoil: Any, words: str) -> None:
    pool = [Exact(bench, "dgl"), Exact(bench, "lossy", spoil)]
    with pytest.raises(bench.check.CheckError, match=words):
        bench.compare.compare(graph, bench.compare.Setting(64, (10, 10)), pool, **SMALL)


def twice(block: Any) -> Any:
    """The first edge of a row of two or more stands in for its second one."""
    at = int(np.flatnonzero(block.row[1:] == block.row[:-1])[0])
    eid, col = block.eid.copy(), block.col.copy()
    eid[at + 1], col[at + 1] = eid[at], col[at]
    return changed(block, eid=eid, col=col)


def moved(block: Any) -> Any:
    row = block.row.copy()
    row[row == row[0]] = row[-1]
    return changed(block, row=row)


SPOILT_BLOCKS = {
    "an edge stands twice": twice,
    r"row \d+: expected": moved,
    "an edge of another row": lambda b: changed(b, row=b.row[::-1][np.argsort(b.row[::-1])[::-1]]),
    "an edge from another node": lambda b: changed(b, col=(b.col + 1) % len(b.src)),
    "does not begin with dst": lambda b: changed(b, src=b.src[::-1]),
    "dst nodes are not the frontier": lambda b: changed(b, dst=b.dst[::-1]),
    "ids outside the graph": lambda b: changed(b, eid=b.eid + 10**9),
    "ids outside the src": lambda b: changed(b, col=b.col + len(b.src)),
    "a src node stands twice": lambda b: changed(b, src=np.append(b.src, b.src[-1])),
}


@pytest.mark.parametrize("words", SPOILT_BLOCKS)
def test_check_names_the_broken_law(bench: SimpleNamespace, graph: Any, words: str) -> None:
    seeds = np.flatnonzero(np.diff(graph.indptr) > 4)[:32]
    (blocks,) = Exact(bench).open(graph, [3], 1).run([seeds], 0)
    bench.check.check_batch(graph, [3], seeds, blocks, "exact")
    with pytest.raises(bench.check.CheckError, match=words):
        bench.check.check_batch(graph, [3], seeds, [SPOILT_BLOCKS[words](blocks[0])], "spoilt")


def run_module(*arguments: str) -> subprocess.CompletedProcess[str]:
    """As a user does it, from the root of the repository.

    DGL's threads spin at barriers and would take minutes beside other tests; passive ones sleep.
    """
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=ROOT,
        env={**os.environ, "OMP_WAIT_POLICY": "passive"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_entry_point(tmp_path: Path) -> None:
    done = run_module("benchmarks", "--quick", "--repeat", "3", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    out = done.stdout
    assert out.index("synthetic") < out.index("PGSampler.sample  ") < out.index("| graph |")
    record = json.loads((tmp_path / "sampling.json").read_text())
    assert {row["contender"] for row in record["rows"]} >= {"sample", "loader"}
    assert record["hardware"]["cores"] > 0 and record["versions"]["numpy"]
    assert (tmp_path / "sampling.png").read_bytes().startswith(b"\x89PNG")


def test_scaling_entry_point(tmp_path: Path) -> None:
    done = run_module("benchmarks.scaling", "--quick", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "scaling.json").read_text())
    assert {"sample", "loader"} <= set(record["growth"])
    assert {found["seeds"] for found in record["hub"]} >= {"the hub", "one of 100"}
    assert (tmp_path / "scaling.png").read_bytes().startswith(b"\x89PNG")


def test_step_compares_and_refuses(
    bench: SimpleNamespace, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert bench.training_step.main(["--quick", "--threads", "1", "--out", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "step.json").read_text())["rows"]
    assert [row["task"] for row in rows] == [
        "features",
        "mean and gradient",
        "mean of rows where they are",
        "edges by source",
        "weighted sum and gradients",
        "softmax and gradient",
        "attention and gradients",
    ]
    assert all(value > 0 for row in rows for key, value in row.items() if "/" in key)
    wrong = {"pygsampler": lambda _: (torch.zeros(3),), "other": lambda _: (torch.ones(3),)}
    with pytest.raises(bench.check.CheckError, match="other gives another result"):
        bench.training_step.compare(wrong, [None], 1)


def test_pipeline_compares_and_refuses(
    bench: SimpleNamespace, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = ["--quick", "--hidden", "16", "--width", "8"]
    assert bench.pipeline.main([*arguments, "--out", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "pipeline.json").read_text())["rows"]
    assert [row["features"] for row in rows] == ["cpu", "file"]
    shares = ["--features", "cpu", "--share", "1", "0.5", "--out", str(tmp_path)]
    assert bench.pipeline.main([*arguments, *shares]) == 0
    shown = json.loads((tmp_path / "pipeline-share.json").read_text())["rows"]
    assert [row["sampler_share"] for row in shown] == [1, 0.5]
    found = {"bytes": {"cuda:0": 9, "pinned": 4_000_000}, "both, ms": 2.0}
    link = bench.pipeline.over_the_link(found, 10, 1e9)
    assert link["link, MB a step"] == link["link, ms"] == pytest.approx(0.4)
    assert link["link / both"] == pytest.approx(0.2)
    for wrong in (
        ["--features", "cached", "--device", "cuda"],
        ["--cache", "0.2"],
        ["--cache", "2"],
    ):
        with pytest.raises(SystemExit):
            bench.pipeline.main([*arguments, *wrong])
    for row in rows:
        assert row["bound, ms"] == max(row["data, ms"], row["training, ms"]) > 0
        assert 0 <= row["waiting_share"] <= 1
        assert set(row["queues"]) == {"sampled", "gathered"}

    def other(x: torch.Tensor, *where: Any) -> Any:
        return bench.pipeline.pgs.Features.from_tensor(x.flip(0))

    capsys.readouterr()
    placed, bench.pipeline._placed = bench.pipeline._placed, other
    try:
        assert bench.pipeline.main(arguments) == 1
    finally:
        bench.pipeline._placed = placed
    assert "refused: cpu: batch 0 has rows of other vertices" in capsys.readouterr().err


def test_hit_rates_and_what_is_asked_of_them(
    bench: SimpleNamespace, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert bench.cache.main(["--quick", "--out", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "cache.json").read_text())["rows"]
    assert [row["size_percent"] for row in rows] == list(bench.cache.SIZES)
    for row in rows:
        rate = row["hit_rate"]
        assert all(rate[name] <= rate["belady"] for name in rate)
        assert rate["random"] < rate["degree"] and rate["presampled"] <= rate["best set"]
        assert rate["exact"] <= rate["best set"]
    assert (tmp_path / "cache.png").read_bytes().startswith(b"\x89PNG")
    spoilt = [{**row, "hit_rate": {**row["hit_rate"], "exact": 0.1}} for row in rows]
    assert bench.cache.missed(rows) == [] and len(bench.cache.missed(spoilt)) == 1


def test_caches_of_the_benchmark_are_those_of_a_simulation(bench: SimpleNamespace) -> None:
    random, rows, size = np.random.default_rng(2), 60, 11
    batches = [
        random.permutation(rows)[: random.integers(1, 20)].astype(np.int32) for _ in range(80)
    ]
    following, first = bench.cache.next_reads(batches, rows)

    def upcoming(row: int, after: int) -> int:
        return next((n for n in range(after + 1, len(batches)) if row in batches[n]), 10**9)

    held = sorted(range(rows), key=lambda row: upcoming(row, -1))[:size]
    hits = 0
    for number, ids in enumerate(batches):
        hits += len(set(held) & set(ids.tolist()))
        known = set(held) | set(ids.tolist())
        held = sorted(known, key=lambda row, n=number: upcoming(row, n))[:size]
    assert bench.cache.belady(following, first, size) == hits
    for kind in (bench.cache.Lru, bench.cache.TrueLru):
        whole = kind(rows, 10 * rows)
        seen: set[int] = set()
        for ids in batches:
            found = whole.read(ids)
            # With that many places a row that was read is hardly ever driven out.
            assert found <= len(seen & set(ids.tolist()))
            seen |= set(ids.tolist())
        assert found == len(ids) or kind is bench.cache.Lru


def test_sampler_that_ignores_weights_is_refused(bench: SimpleNamespace) -> None:
    def ours(weights: Any) -> list[Any]:
        return [bench.weights.OursByWeight(weights)]

    def flat(weights: Any) -> list[Any]:
        other = bench.weights.OursByWeight((weights > 0).astype(np.float32))
        other.name = "other"
        return [*ours(weights), other]

    bench.weights.check_law(ours)
    with pytest.raises(bench.check.CheckError, match="edges of weight 0"):
        bench.weights.check_law(lambda _: [bench.contenders.OneBatch()])
    # Without weights of 0 it is the mean that tells them apart.
    with pytest.raises(bench.check.CheckError, match="other draws edges of mean weight"):
        bench.weights.check_law(flat)


def test_hub_graph_has_one_hub(bench: SimpleNamespace) -> None:
    graph = bench.scaling.hub_graph(5_000)
    degree = np.diff(graph.indptr)
    assert degree[0] == 5_000 and set(degree[1:4097]) == {100} and set(degree[4097:]) == {2}
    assert len(np.unique(graph.indices[:5_000])) == 5_000
    assert set(degree[graph.indices]) == {2}
    records = bench.scaling.hub_times(graph, [Exact(bench)], rounds=2)
    assert [found["to_ordinary"]["median"] == 1 for found in records] == [False, True] * 2


def test_bad_command_line_is_named() -> None:
    done = run_module("benchmarks", "--setting", "1024")
    assert done.returncode == 2
    assert "setting: expected sizes like 1024x10,10, got '1024'" in done.stderr
