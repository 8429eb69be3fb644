"""What benchmarks.gpu does without a GPU: its cases, its summary, its tables and pictures."""

from __future__ import annotations

import importlib
import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

US = {"median": 20.0, "q25": 19.0, "q75": 22.0, "best": 18.0}
WAYS = ("off", "B", "B+S", "B+S+A", "streams", "bsp", "persistent")
CASE = {"shape": "reddit", "batch": 1024, "fanouts": [10, 10], "ids": "int32", "edges": 1000}
MODEL = {
    **{"features": 100, "hidden": 256, "classes": 47, "heads": 4},
    **{"optimizer": "Adam", "graph": "products"},
}
ROWS: dict[str, dict[str, Any]] = {
    "latency": {
        **{"engine_us": US, "public_us": US, "loader_us": US},
        **{"edges_per_second": 5e9, "peer_us": 400.0, "ratio": 20.0},
    },
    "calls": {"us": {"engine": US, "sample": US, "loader": US}},
    "throughput": {
        **{"in_flight_us": {"1": 20.0, "8": 9.0}, "sample_many_us": {"4": 8.0}},
        **{"loader_us": 12.0, "best_us": 8.0, "edges_per_second": 5e9},
    },
    "grid": {"engine_us": US, "peer_us": 400.0, "ratio": 20.0},
    "ablation": {
        "us": dict.fromkeys(("bsp", "fused", "persistent", "queue", "queue_unordered"), US)
    },
    "training": {
        **{"name": "in flight", "mode": "auto", "prefetch": 4, "step_us": 900.0},
        **{"wait_us": 9.0, "wait_share": 0.01, "free_step_us": 800.0},
    },
    "steps": {
        **{"model": "SAGE", "plain_ms": 2.0, "helpers_ms": 2.5, "graph_ms": 0.5},
        **{"graph_tf32_ms": 0.4, "dgl_ms": 5.0},
    },
    "pyg_steps": {
        **{"layer": "GATConv", "edges": "coo", "eager_ms": 4.0, "eager_tf32_ms": 3.0},
        **{"graph_ms": 2.0, "graph_tf32_ms": 1.0, "dgl_ms": 8.0},
    },
    "turbo": {
        **{"kind": "kernel", "fanouts": [15], "call_us": dict.fromkeys(WAYS, US), "kernels_us": {}},
        **{"draw_us": dict.fromkeys(WAYS, 9.0), "of_copy": dict.fromkeys(WAYS, 0.5), "bytes": 9},
    },
    "transit": {
        **{"walk": "PPR", "walks": 5000, "a_vertex": 0.03, "ratio": 0.25, "ratio_csr": 0.5},
        **{"gsteps": {"sample": 8.0, "csr": 4.0, "transit": 2.0}, "index_share": 0.4},
    },
    "roofline": {
        **{"engine_us": US, "sectors_per_edge": 0.9, "bytes_per_edge": 10.0, "reads_us": 5.0},
        **{"atomics_us": 9.0, "writes_us": 3.0, "bound_us": 13.0, "sum_us": 20.0},
        **{"near": 0.65, "near_sum": 1.0},
    },
}


def record(part: str) -> dict[str, Any]:
    return {
        "part": part,
        "date": "2026-01-01T00:00:00+00:00",
        "command": f"python -m benchmarks.gpu {part}",
        "commit": None,
        "gpu": {"name": "A GPU", "memory_gb": 100.0, "driver": None},
        "versions": {"python": "3.12", "torch": "2.11"},
        "left_out": [],
        "rows": [{**CASE, **ROWS[part]}],
        "model": MODEL,
    }


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(ROOT))
    made = tmp_path / "gpu"
    made.mkdir()
    for part in ROWS:
        (made / f"{part}.json").write_text(json.dumps(record(part)))
    return made


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """What the script tools/figures.py writes, and where it has it from."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    importlib.import_module("figure_tables")
    return importlib.import_module("figure_tables.record")


def test_every_part_has_a_module() -> None:
    from benchmarks.gpu.__main__ import _MODULES, PARTS

    for part in PARTS:
        assert importlib.util.find_spec(_MODULES.get(part, f"benchmarks.gpu.{part}")), part


def test_cases_of_others(folder: Path) -> None:
    from benchmarks.gpu import cases

    reference, grid = cases.reference(), cases.dgl_grid()
    assert (len(reference), len(grid)) == (28, 288)
    assert all(case.peer_us > 0 and case.edges > 0 for case in reference + grid)
    assert {case.shape for case in grid} == set(cases.PAPER_SHAPES)
    assert {case.batch for case in grid} == set(cases.PAPER_BATCHES)
    wanted = {(fanout,) * hops for fanout in cases.PAPER_FANOUTS for hops in cases.PAPER_HOPS}
    assert {case.fanouts for case in grid} == wanted
    # Shapes stand together: each graph is made once.
    assert list(cases.by_shape(reference)) == ["products", "reddit", "arxiv", "papers100m"]


def test_summary_has_every_part(folder: Path) -> None:
    from benchmarks.gpu import summary

    text = "\n".join(summary.lines(folder))
    for part in ROWS:
        assert f"{part}: 1 rows" in text


def test_tables(folder: Path, figures: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for part in ROWS:
        assert (
            "No figures" in figures.FIGURES[f"gpu_{part}"]() or (figures.RESULTS / "gpu").exists()
        )
    monkeypatch.setattr(figures, "RESULTS", folder.parent)
    for part in ROWS:
        text = figures.FIGURES[f"gpu_{part}"]()
        where = "A GPU, 100 GB, driver unknown; Python 3.12, PyTorch 2.11; 2026-01-01"
        if part == "steps":
            assert where in text
        else:
            assert text.startswith(where)
        widths = {line.count("|") for line in text.splitlines() if line.startswith("|")}
        assert len(widths) == 1


def test_ratios_of_steps(
    folder: Path, figures: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "RESULTS", folder.parent)
    text = figures.FIGURES["gpu_pyg_steps"]()
    assert "| GATConv 1024x(10,10) | `coo` | 8.0 | 4.00 | 3.00 | 2.00 | 1.00 | 4.0x |" in text
    rows = [{**CASE, **ROWS["pyg_steps"], "dgl_ms": None}]
    (folder / "pyg_steps.json").write_text(json.dumps({**record("pyg_steps"), "rows": rows}))
    text = figures.FIGURES["gpu_pyg_steps"]()
    assert "| `coo` |  | 4.00 | 3.00 | 2.00 | 1.00 |  |" in text


def test_tables_of_what_lies_beside(
    folder: Path, figures: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of benchmarks that are not of benchmarks.gpu, on a GPU."""
    about = {**record("grid"), "hardware": {"cpu": "A CPU", "cores": 16, "memory_gb": 100.0}}
    about |= {"versions": {"python": "3.12", "dgl": None, "torch": "2.11", "numpy": "2"}}
    about |= {"commit": "1234567890"}
    del about["gpu"]
    monkeypatch.setattr(figures, "RESULTS", folder)
    names = "pyg_layers", "pipeline_cache", "pipeline_shares"
    assert all("for this version yet; `python" in figures.FIGURES[name]() for name in names)
    times = {"data, ms": 0.25, "training, ms": 2.0, "both, ms": 2.5}
    row = {**times, "waiting_share": 0.05, "gathering_share": 0.2, "hit_rate": 0.4}
    link = {"link, MB a step": 25.0, "link, ms": 0.5, "link / both": 0.2}
    cached = {**row, **link, "cached": 0.2}
    rows = {
        "pyg_layers-cuda": [
            {"setting": "4x(2)", "what": "GAT", "coo, ms": 3.0, "edge_index, ms": 2.0}
            | {"features=, ms": 1.0}
        ],
        "pipeline-cuda-cache": [
            cached,
            {**row, **link, "hit_rate": None},
            {**row, "features": "device", "hit_rate": None},
        ],
        "pipeline-cuda-share": [{**row, "sampler_share": None}, {**row, "sampler_share": 0.5}],
    }
    for name, found in rows.items():
        (folder / f"{name}.json").write_text(json.dumps({**about, "rows": found}))
    texts = {name: figures.FIGURES[name]() for name in names}
    assert all("A CPU, 16 cores" in text for text in texts.values())
    assert "| 4x(2) | GAT | 3.00 | 2.00 | 1.00 |" in texts["pyg_layers"]
    reads = "2.00 | 2.50 | 5.0% | 20.0% | 25.0 | 0.50 | 20.0% |"
    assert f"| 20% | 40.0% | {reads}" in texts["pipeline_cache"]
    assert f"| none |  | {reads}" in texts["pipeline_cache"]
    assert "| all, on the GPU |  | 2.00 | 2.50 | 5.0% | 20.0% |  |  |  |" in texts["pipeline_cache"]
    assert "| none | 0.250 | 2.000 | 2.500 | 5.0% |" in texts["pipeline_shares"]
    assert "| 0.5 | 0.250 | 2.000 | 2.500 | 5.0% |" in texts["pipeline_shares"]


def test_tables_of_turbognn(
    folder: Path, figures: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By kernels, by whole calls where the profiler saw none, of several hops, and the sweep."""
    tables = ("gpu_turbo", "gpu_turbo_ablation", "gpu_turbo_calls", "gpu_turbo_sweep")
    monkeypatch.setattr(figures, "RESULTS", folder / "none")
    assert {figures.FIGURES[name]() for name in tables} == {figures.NONE_OF_GPU}
    monkeypatch.setattr(figures, "RESULTS", folder.parent)
    kernel = {**CASE, **ROWS["turbo"], "kernels_us": {"B+S+A": {"reservoir_order": 0.25}}}
    draw_us = {**dict.fromkeys(WAYS, 10.0), "off": 20.0, "B": 16.0}
    call_us = {way: {**US, "median": 100.0 if way == "off" else 50.0} for way in WAYS}
    blind = {**kernel, "shape": "arxiv", "call_us": call_us}
    blind |= {"draw_us": {}, "of_copy": {}, "kernels_us": {}}
    hops = {**blind, "kind": "hops", "fanouts": [5, 3]}
    swept = [
        {"kind": "sweep", "threshold": name, "value": value, "us": 7.0}
        for name in ("degree_threshold", "block_threshold")
        for value in (None, 64)
    ]
    content = {
        **record("turbo"),
        "rows": [*swept, {**kernel, "draw_us": draw_us}, blind, {**blind, "fanouts": [30]}, hops],
        "thresholds": {"degree_threshold": 64, "block_threshold": None},
    }
    (folder / "turbo.json").write_text(json.dumps(content))
    found = {name: figures.FIGURES[name]() for name in tables}
    for text in found.values():
        lines = [line for line in text.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in lines}) == 1
    assert "| reddit | 1,024 | 20 | 10 | 2.00x |  |  |  |" in found["gpu_turbo"]
    assert "| arxiv | 1,024 | 100 | 50 | 2.00x | 100 | 50 | 2.00x |" in found["gpu_turbo"]
    ablation = found["gpu_turbo_ablation"]
    assert "| 15 | 20 | 1.25x | 2.00x | 2.00x | 2.00x | 50 % | 50 % | 50 % | 2.5 % |" in ablation
    assert "| 30 | 100 | 2.00x | 2.00x | 2.00x | 2.00x |  |  |  |  |" in ablation
    assert "| arxiv | 1024x(5,3) | 1,000 | 100 | 50 | 50 | 50 | 50 |" in found["gpu_turbo_calls"]
    assert "| degree | 64 | 7.0 | best |" in found["gpu_turbo_sweep"]
    assert "| blocks | the plan's own | 7.0 | best |" in found["gpu_turbo_sweep"]


def test_pictures(folder: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    from benchmarks.gpu import plots

    plots.ablation(record("ablation"), folder)
    plots.grid(record("grid"), folder / "grid.png")
    assert {file.name for file in folder.glob("*.png")} == {
        "ablation_speedup.png",
        "ablation_time.png",
        "grid.png",
    }


def test_rates_between_the_measured_sizes(folder: Path) -> None:
    from benchmarks.gpu import ceilings

    points = [{"bytes": 1e6, "giga_per_second": 80}, {"bytes": 1e8, "giga_per_second": 40}]
    assert ceilings.rate(points, 1e3) == 80e9
    assert ceilings.rate(points, 1e7) == pytest.approx(60e9)
    assert ceilings.rate(points, 1e12) == 40e9


def test_rows_of_the_gather(folder: Path) -> None:
    torch = pytest.importorskip("torch", reason="needs torch")
    from benchmarks.gpu import gather, summary

    times = {"gather": [20.0, 10.0, 40.0], "torch": [40.0, 30.0, 80.0], "copy": [10.0, 9.0, 20.0]}
    row = gather.result("device", torch.empty(30, 100), 1000, times)
    # 400 bytes are read and written for each of the ids.
    assert row["gb_per_second"]["gather"] == 40.0
    assert row["ratio"] == {"torch": 2.0, "copy": 0.5}
    assert "1000 of 30 rows of  400 B" in gather.line(row)
    (folder / "gather.json").write_text(json.dumps({**record("grid"), "rows": [row]}))
    text = "\n".join(summary.lines(folder))
    assert "rows of  400 B     20.0 us  2.00x torch  0.50x copy" in text
    about = gather.words(torch.arange(5, dtype=torch.int32), torch.empty(7, 3), torch.empty(5, 3))
    _, count, bits, _, rows, row_bytes, *_ = about
    assert (count, bits, rows, row_bytes, len(about)) == (5, 32, 7, 12, 11)


def test_rows_of_the_cache(folder: Path) -> None:
    pytest.importorskip("torch", reason="needs torch")
    from benchmarks.gpu import cache, summary

    us = {name: {"median": value} for name, value in (("link", 100.0), ("static", 30.0))}
    row = {"row_bytes": 400, "rows": 50, "cached": 5, "count": 9, "hits": 0.8, "us": us}
    assert cache.line(row) == (
        "9 rows of 400 B, 80 % hits: link 100.0 us, static 30.0 us; the link alone 20.0 us"
    )
    times = {"tally_us": {"median": 4.0}, "change_ms": {"median": 7.0}, "brought": 3}
    rows = [row, {"row_bytes": 400, **times}]
    (folder / "cache.json").write_text(json.dumps({**record("grid"), "rows": rows}))
    text = "\n".join(summary.lines(folder))
    assert "rows of  400 B,  80 % hits    100.0 us link     30.0 us static" in text
    assert "rows of  400 B: 4.0 us to count a batch, 7.0 ms to bring 3 rows" in text
