"""Commands with ``--device cuda``: the GPU's samples are the CPU's, and are checked like them."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from tests.support import parity
from tests.support.partners import partner

GRAPH = parity.random_graph(400, 3)


def sampled(file: Path, device: str, *options: str) -> Any:
    partner("click")
    partner("rich")
    from click.testing import CliRunner

    from pygsampler.__main__ import main

    arguments = ["sample", str(file), "--seeds", "all", "--batch-size", "64", "--json"]
    result = CliRunner().invoke(main, [*arguments, "--device", device, *options])
    assert result.exit_code == 0, (result.output, result.exception)
    return json.loads(result.stdout)


@pytest.mark.parametrize("options", [(), ("--replace", "--fanouts", "3,-1,4")])
def test_sample_writes_the_same_table(tmp_path: Path, options: tuple[str, ...]) -> None:
    pa = partner("pyarrow")
    file = tmp_path / "graph.pgs"
    GRAPH.graph().save(file)
    tables, edges = [], []
    for device in ("cpu", "cuda"):
        out = tmp_path / f"{device}.arrow"
        edges.append(sampled(file, device, *options, "--out", str(out))["edges_by_hop"])
        with pa.memory_map(str(out)) as source:
            tables.append(pa.ipc.open_file(source).read_all())
    assert edges[0] == edges[1] and sum(edges[0]) > 5000
    assert tables[0].equals(tables[1])


def test_bench_checks_the_batches_of_a_device() -> None:
    check = importlib.import_module("pygsampler._cli.bench.check")
    contenders = importlib.import_module("pygsampler._cli.bench.contenders")
    csc = importlib.import_module("pygsampler._cli.bench.csc")
    rows = GRAPH.num_nodes + 1 - len(GRAPH.indptr)
    indptr = np.concatenate([GRAPH.indptr, np.full(rows, GRAPH.indptr[-1])])
    graph = csc.CscGraph("random", indptr, GRAPH.indices)
    name, label = "sample:cuda", "PGSampler.sample, cuda"
    for pinned, more in ((False, ("", "")), (True, (":page-locked", ", page-locked"))):
        form = contenders.OneBatch(device="cuda", pinned=pinned)
        assert (form.name, form.label) == (name + more[0], label + more[1])
        session = form.open(graph, [4, 3], 1)
        seeds = [np.arange(50), np.arange(50, 100)]
        for ids, batch in zip(seeds, session.run(seeds, 0), strict=True):
            check.check_batch(graph, [4, 3], ids, session.views(batch), "on a device")


@pytest.mark.usefixtures("gpu")
def test_bench_compares_loaders_and_steps_of_a_device(tmp_path: Path) -> None:
    for name in ("click", "rich"):
        partner(name)
    from click.testing import CliRunner

    from pygsampler.__main__ import main

    file = tmp_path / "graph.pgs"
    GRAPH.graph().save(file)
    size = ["--seconds", "0", "--batch-size", "50", "--fanouts", "4,3", "--width", "8"]
    options = ["--against", "all", "--device", "cuda", "--json"]
    result = CliRunner().invoke(main, ["bench", str(file), *size, *options])
    assert result.exit_code == 0, (result.output, result.exception)
    record = json.loads(result.stdout)
    assert record["hardware"]["gpu"] == pgs.cuda.device_name(0)
    rows = record["rows"]
    here = {(row["measure"], row["contender"]) for row in rows}
    for place in ("", ":cuda", ":cuda:page-locked"):
        assert ("sampling", f"sample{place}") in here and ("loader", f"loader{place}") in here
    assert {("step", "torch"), ("step", "torch:cuda")} <= here
