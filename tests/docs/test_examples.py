"""The examples that have no test of their own beside their subject: each runs, and it learns."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest
from partners import partner

from tests.support.interpreter import imports_of, prepared

EXAMPLES = Path(__file__).parents[2] / "examples"
# Of 58 classes the largest has 10.5 %.
GUESSING = 10.5


def run(name: str, *arguments: str) -> str:
    path = EXAMPLES / name
    with tempfile.TemporaryDirectory() as scratch:
        done = prepared(*imports_of(path.read_text())).run_file(
            path, *arguments, scratch=Path(scratch), timeout=600
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_by_torchrun(name: str, *arguments: str) -> str:
    """Runs an example in two processes, each with one thread: threads spin at barriers."""
    by = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    command = [sys.executable, *by, str(EXAMPLES / name), *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("name", "needs"),
    [
        ("graphsage_pyg.py", "torch_geometric"),
        ("graph_file_pyg.py", "torch_geometric"),
        ("graph_file.py", "torch"),
    ],
)
def test_it_learns(name: str, needs: str) -> None:
    partner(needs)
    found = re.search(r"validation accuracy: ([\d.]+)%", run(name, "--epochs", "1"))
    assert found is not None
    assert float(found[1]) > 3 * GUESSING


def test_types_help() -> None:
    partner("torch")
    told = run("rgcn.py", "--epochs", "1")
    found = re.findall(r"accuracy (with\w*) types: ([\d.]+)%", told)
    assert [name for name, _ in found] == ["without", "with"]
    without, with_types = (float(accuracy) for _, accuracy in found)
    assert with_types > max(without + 5, 4 * GUESSING)


@pytest.mark.slow
@pytest.mark.once
def test_types_help_in_pyg() -> None:
    partner("torch_geometric")
    told = [run("hgt_pyg.py", "--epochs", "1", *more) for more in ([], ["--without-types"])]
    found = [re.search(r"validation accuracy: ([\d.]+)%", each) for each in told]
    with_types, without = (float(each[1]) for each in found if each is not None)
    assert with_types > max(without + 3, 3 * GUESSING)


@pytest.mark.slow
@pytest.mark.once
def test_neighbours_by_types_are_heard() -> None:
    partner("torch")
    told = run("hetgnn.py", "--epochs", "1")
    found = re.findall(r"accuracy of (\w+): ([\d.]+)%", told)
    assert [name for name, _ in found] == ["GraphSAGE", "HetGNN"]
    assert all(float(accuracy) > 3 * GUESSING for _, accuracy in found)


@pytest.mark.once
def test_links_are_told_from_others() -> None:
    partner("torch")
    told = run("links.py", "--epochs", "1", "--edges", "60000")
    found = re.findall(r"(AUC|hits@10).*: ([\d.]+)%", told)
    assert [name for name, _ in found] == ["AUC", "hits@10"]
    auc, hits = (float(figure) for _, figure in found)
    assert auc > 75
    assert hits > 3 * 10


@pytest.mark.slow
@pytest.mark.once
def test_types_help_to_tell_links_from_others() -> None:
    partner("torch")
    told = run("links_hetero.py", "--edges", "60000", "--tested", "1000")
    found = re.findall(r"(AUC|hits@10).* (with\w*) types: ([\d.]+)%", told)
    assert [(name, how) for name, how, _ in found] == [
        (name, how) for how in ("without", "with") for name in ("AUC", "hits@10")
    ]
    (auc, hits), (auc_typed, hits_typed) = (
        [float(figure) for _, how, figure in found if how == which] for which in ("without", "with")
    )
    assert auc_typed > max(auc, 85)
    assert hits_typed > max(hits, 6 * 10)


@pytest.mark.once
def test_subgraphs_tell_links_from_others() -> None:
    partner("torch")
    told = run("seal.py", "--epochs", "1", "--links", "1500", "--tested", "500")
    found = re.search(r"AUC: ([\d.]+)%", told)
    assert found is not None
    assert float(found[1]) > 75


@pytest.mark.once
def test_times_help_on_what_arrives() -> None:
    partner("torch")
    told = run("temporal.py", "--epochs", "1")
    found = re.findall(r"accuracy (\w+) times?: ([\d.]+)% of arriving.*, ([\d.]+)% in hind", told)
    assert [name for name, *_ in found] == ["without", "by"]
    (blind, leaking), (timed, _) = ((float(here), float(later)) for _, here, later in found)
    # What is learnt of the future is of no use, and looks good in hindsight.
    assert timed > max(blind, 3 * GUESSING)
    assert leaking > blind + 5


@pytest.mark.slow
@pytest.mark.once
def test_samplers_learn() -> None:
    partner("torch")
    names = ["asgcn", "saint_walk", "pass", "mvs", "pinsage", "cluster_gcn"]
    told = run("samplers.py", "--epochs", "1", *(f"--only={name}" for name in names))
    if find_spec("pymetis") is None:
        assert f"{names.pop()}     left out: METIS needs pymetis" in told
    found = re.findall(r"(\w+) +validation accuracy: ([\d.]+)%", told)
    assert [name for name, _ in found] == names
    assert all(float(accuracy) > 3 * GUESSING for _, accuracy in found)


@pytest.mark.slow
@pytest.mark.once
def test_packages_of_a_section_lie_together(tmp_path: Path) -> None:
    partner("torch")
    partner("matplotlib")
    path = tmp_path / "node2vec.png"
    told = run("node2vec.py", "--epochs", "2", "--picture", str(path))
    found = re.search(r"validation accuracy: ([\d.]+)%", told)
    assert found is not None
    assert float(found[1]) > 4 * GUESSING
    assert path.read_bytes().startswith(b"\x89PNG")


def test_processes_share_an_epoch_exactly(tmp_path: Path) -> None:
    partner("torch")
    seeds = len(partner("pygsampler").datasets.debian().train)
    whole = run_by_torchrun("ddp.py", "--epochs", "1")
    assert f"epoch 0: {seeds} seeds" in whole
    # The same batches, and so the same loss.
    parts = tmp_path / "debian.parts"
    assert run("ddp.py", "--epochs", "1", "--parts", str(parts)) == whole
    assert (parts / "partition.json").exists()


@pytest.mark.slow
@pytest.mark.once
def test_a_pipeline_tells_what_it_waits_for(tmp_path: Path) -> None:
    partner("torch")
    told = run("pipeline.py", "--device", "cpu", "--trace", str(tmp_path / "trace.json"))
    losses = re.findall(r"loss ([\d.]+), [\d.]+ s, waits [\d.]+%, [\d.]+ sampled", told)
    assert len(losses) == 5
    assert len(set(losses)) == 1, told
    assert (tmp_path / "trace.json").exists()


def test_every_example_is_tested() -> None:
    tests = "".join(path.read_text() for path in EXAMPLES.parent.glob("tests/**/test_*.py"))
    missing = [
        path.name for path in EXAMPLES.iterdir() if path.is_file() and path.name not in tests
    ]
    assert not missing


@pytest.mark.once
@pytest.mark.parametrize(
    ("question", "folder", "at_least"),
    [
        ("purchases", "shop", 0.6),
        pytest.param("frauds", "bank", 0.9, marks=pytest.mark.slow),
    ],
)
def test_questions_to_tables_are_answered(
    tmp_path: Path, question: str, folder: str, at_least: float
) -> None:
    for name in ("torch", "pyarrow"):
        partner(name)
    run("table_data.py", str(tmp_path))
    told = run("tables.py", question, str(tmp_path / folder))
    found = re.search(r"test AUROC: ([\d.]+)", told)
    assert found is not None
    assert float(found[1]) > at_least
