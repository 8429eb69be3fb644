"""Type checkers know what samplers and loaders give."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Lines that end in a class reveal it; those that end in an error code have that error.
PROGRAM = """
import torch
import pygsampler as pgs
from pygsampler import torch as loaders

def check(g: pgs.Graph, h: pgs.Graph, ids: torch.Tensor, fanouts: list[int]) -> None:
    data, links, both = loaders.DataLoader, loaders.LinkLoader, {"a": ids}
    sampler, typed = pgs.PGSampler([5, 5]), pgs.PGSampler([{("a", "to", "b"): 5}])
    reveal_type(sampler.sample(g, ids))  # MiniBatch
    reveal_type(sampler.sample(h, both, epoch=1))  # MiniBatch
    reveal_type(sampler.submit(g, ids).result())  # MiniBatch
    reveal_type(typed.submit(h, both, seed_time=3).result())  # MiniBatch
    reveal_type(sampler.sample_many(g, [ids])[0])  # MiniBatch
    reveal_type(sampler.sample_many(h, [both], seed_time=3)[0])  # MiniBatch
    reveal_type(pgs.LaborSampler([3], edge_weights="ht").sample(h, both))  # MiniBatch
    reveal_type(sampler.sample(h, both).torch())  # MiniBatch
    print(sampler.sample(h, both).blocks[0]["to"].indices, data(g, ids, [5], batch_size=3).device)
    labor = pgs.LaborSampler([{"to": 3}], edge_weights="ht")
    reveal_type(labor.sample(h, both, exclude={"to": ids}))  # MiniBatch
    h.edata["to"]["w"].torch(), g.edata["w"].torch(), h.num_nodes["a"] + g.num_nodes
    reveal_type(h["to"])  # Graph
    reveal_type(pgs.samplers.HGTSampler([3]).sample(h, both))  # MiniBatch
    reveal_type(next(iter(data(g, ids, fanouts, batch_size=3))))  # MiniBatch
    reveal_type(next(iter(data(g, ids, sampler, batch_size=3, shuffle=True))))  # MiniBatch
    reveal_type(next(iter(data(h, both, [5, 5], batch_size=3))))  # MiniBatch
    reveal_type(next(iter(data(h, both, typed, batch_size=3, features={}))))  # MiniBatch
    reveal_type(next(iter(data(h, both, labor, batch_size=3))))  # MiniBatch
    reveal_type(next(iter(data(g, ids, pgs.RandomWalk(5), batch_size=3))))  # Walks[torch
    reveal_type(next(iter(data(g, ids, pgs.research.KHop([5]), batch_size=3))))  # StepSamples[torch
    reveal_type(next(iter(data(g, ids, pgs.walks.PinSAGE(), batch_size=3))))  # Visits
    reveal_type(next(iter(data(g, ids, fanouts, batch_size=3, static=True))))  # StaticMiniBatch
    reveal_type(next(iter(data(h, both, [5], batch_size=3, static=True))))  # StaticMiniBatch
    reveal_type(next(iter(links(g, ids, fanouts, batch_size=3))))  # LinkBatch
    reveal_type(next(iter(links(h, {}, fanouts, batch_size=3, exclude=None))))  # LinkBatch
    reveal_type(next(iter(links(g, ids, fanouts, batch_size=3, static=True))))  # LinkBatch
    reveal_type(next(iter(links(h, {}, [5], batch_size=3, static=True))))  # LinkBatch
    data(g, ids, fanouts, batch_size=3, num_workers=2)  # call-overload
    data(g, ids, fanouts)  # call-overload
    links(g, ids, fanouts, batch_size=3, seed_weights=ids)  # call-arg
    sampler.sample(g, ids, epochs=3)  # call-arg
"""


@pytest.mark.timeout(600)
def test_samplers_and_loaders_reveal_what_they_give(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    monkeypatch.setenv("MYPYPATH", str(ROOT / "python"))
    options = ["--follow-imports=silent", f"--cache-dir={tmp_path}", "--no-error-summary"]
    options += [f"--python-executable={sys.executable}", f"--config-file={ROOT / 'pyproject.toml'}"]
    # In a process of its own: what mypy keeps of torch makes each later collection take seconds.
    command = [sys.executable, "-m", "mypy", *options, str(program)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stderr == ""
    by_line: dict[int, str] = {}
    for line in done.stdout.splitlines():
        path, number, rest = line.split(":", 2)
        assert path.endswith("program.py"), line
        by_line[int(number)] = by_line.get(int(number), "") + rest
    for number, line in enumerate(PROGRAM.splitlines(), 1):
        text, _, expected = line.partition("  # ")
        found = by_line.pop(number, "")
        if "reveal_type" in text:
            # Of a named tuple its fields come first.
            assert f".{expected}" in found and "error" not in found, (line, found)
        elif expected:
            assert f"[{expected}]" in found, (line, found)
    assert by_line == {}
