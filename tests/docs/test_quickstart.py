"""The quickstart: its command from end to end, its parts, and the notebook that tells it."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest
import torch
from click.testing import CliRunner
from nbclient import NotebookClient

from pygsampler import Graph, PGSampler
from pygsampler.__main__ import main
from pygsampler.datasets import Debian, debian
from pygsampler.quickstart.model import MLP, Bags, GraphSAGE, MeanConv, WordSum
from pygsampler.quickstart.neighborhood import FANOUTS, sample_neighbourhood
from pygsampler.quickstart.picture import draw
from pygsampler.quickstart.training import Outcome, Run, edges_per_second, run

NOTEBOOK = Path(__file__).parents[2] / "examples" / "quickstart.ipynb"
COMMAND = [sys.executable, "-m", "pygsampler", "quickstart"]


@pytest.fixture(scope="module")
def data() -> Debian:
    return debian()


@pytest.fixture(scope="module")
def graph(data: Debian) -> Graph:
    return data.graph()


def accuracies(text: str) -> tuple[float, float]:
    found = re.search(r"test accuracy.*GraphSAGE ([\d.]+)%, MLP[^\d]*([\d.]+)%", text)
    assert found, text
    return float(found[1]), float(found[2])


# ---- the command -------------------------------------------------------------------------------


def test_command_reaches_its_accuracy_and_leaves_a_picture(tmp_path: Path) -> None:
    out = tmp_path / "pictures" / "quickstart.png"
    done = subprocess.run(
        [*COMMAND, "--out", out], capture_output=True, text=True, cwd=tmp_path, timeout=240
    )
    assert done.returncode == 0, done.stderr
    sage, mlp = accuracies(done.stdout)
    assert sage >= 75
    assert 55 <= mlp <= 64
    assert re.search(r"sampled edges +[\d,]+ in training, [\d.]+ million a second", done.stdout)
    assert str(out) in done.stdout
    assert done.stderr == ""  # Bars are for terminals.
    width, height = struct.unpack(">II", out.read_bytes()[16:24])
    assert (width, height) == (2250, 1350)


def test_json_is_one_document(tmp_path: Path) -> None:
    out = tmp_path / "quickstart.svg"
    done = CliRunner().invoke(main, ["quickstart", "--json", "--epochs", "1", "--out", str(out)])
    assert (done.exit_code, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert (found["epochs"], found["seed"]) == (1, 0)
    assert found["test_accuracy"]["graphsage"] > found["test_accuracy"]["mlp"] > 0.3
    assert len(found["validation"]["graphsage"]) == len(found["validation"]["mlp"]) == 1
    assert found["sampled_edges"] > found["nodes"]
    assert found["picture"] == str(out)
    assert b"<svg" in out.read_bytes()[:1000]


def test_ctrl_c_stops_it_without_a_traceback(tmp_path: Path) -> None:
    terminal, end = pty.openpty()
    # As new it has no columns, and tqdm no room for numbers.
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("4H", 24, 100, 0, 0))
    process = subprocess.Popen(
        [*COMMAND, "--epochs", "1000"], stdout=subprocess.DEVNULL, stderr=end, cwd=tmp_path
    )
    os.close(end)
    try:
        said = b""
        while not re.search(rb" [1-9]\d*/19000", said):  # In the middle of training.
            said += os.read(terminal, 4096)
        process.send_signal(signal.SIGINT)
        rest = b""
        # EIO: the other end has gone.
        with suppress(OSError):
            while piece := os.read(terminal, 4096):
                rest += piece
        assert process.wait(timeout=240) == 130
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
    assert b"Traceback" not in rest
    assert b"Aborted!" in rest
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("missing", ["torch", "numpy", "matplotlib"])
def test_what_is_missing_is_named_with_the_command_that_brings_it(
    run_python: Callable[..., str], missing: str
) -> None:
    said = run_python(
        f"""
        import sys
        sys.modules[{missing!r}] = None
        sys.stderr = sys.stdout
        from pygsampler.__main__ import main
        main(["quickstart"])
        """,
        ends_with=1,
    )
    assert said == f"Error: quickstart needs {missing}: pip install {missing}\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--package", "pyton3"], "expected the name of a package of Debian 12, got 'pyton3'"),
        (["--package", "pyton3"], "near to it: python3,"),
        (["--out", "picture.txt"], "expected a suffix of"),
        (["--out", "/proc/none/picture.png"], "Invalid value for --out"),
        (["--epochs", "0"], "0 is not in the range x>=1"),
        (["--threads", "0"], "0 is not in the range x>=1"),
        (["--seed", "-1"], "-1 is not in the range"),
    ],
)
def test_wrong_options_are_refused_before_any_work(options: list[str], message: str) -> None:
    result = CliRunner().invoke(main, ["quickstart", *options])
    assert result.exit_code == 2
    assert message in result.output


def test_help_and_unknown_commands() -> None:
    shown = CliRunner().invoke(main, ["--help"])
    assert shown.exit_code == 0
    assert "quickstart" in shown.output
    unknown = CliRunner().invoke(main, ["quickstrat"])
    assert unknown.exit_code == 2
    assert "No such command 'quickstrat'" in unknown.output


def test_help_of_the_command_needs_no_torch(run_python: Callable[..., str]) -> None:
    run_python(
        """
        import sys
        from pygsampler.__main__ import main
        try:
            main(["quickstart", "--help"])
        except SystemExit as end:
            assert end.code == 0
        assert not {"torch", "numpy", "matplotlib"} & set(sys.modules)
        """
    )


# ---- training ----------------------------------------------------------------------------------


@pytest.mark.once
def test_a_run_depends_on_its_seed_alone(data: Debian, graph: Graph) -> None:
    threads, state = torch.get_num_threads(), torch.random.get_rng_state()
    first = run(data, graph, epochs=1, seed=3)
    torch.rand(10)
    again = run(data, graph, epochs=1, seed=3)
    other = run(data, graph, epochs=1, seed=4)
    for one, two in ((first.sage, again.sage), (first.mlp, again.mlp)):
        assert one.validation == two.validation
        assert (one.test, one.num_edges) == (two.test, two.num_edges)
    assert first.sage.test != other.sage.test
    assert first.mlp.test != other.mlp.test
    # Two hops of ten around 19,099 packages, of which many have fewer neighbours.
    assert 500_000 < first.sage.num_edges < 19_099 * 110
    assert first.mlp.num_edges == 0
    assert first.edges_per_second > 0
    torch.random.set_rng_state(state)
    assert torch.get_num_threads() == threads


def test_speed_counts_the_edges_of_whole_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([100.0, 100.0, 100.4, 100.8])
    clock = SimpleNamespace(perf_counter=lambda: next(times))
    monkeypatch.setattr("pygsampler.quickstart.training.time", clock)
    ring = Graph.from_coo(np.arange(100), (np.arange(100) + 1) % 100)
    # Two passes of one edge for each of 100 seeds, and one for each of the 100 sources.
    assert edges_per_second(ring, seconds=0.5) == pytest.approx(400 / 0.8)


def test_mean_conv_is_the_mean_of_what_is_heard() -> None:
    # Vertex 3 has no in-neighbours.
    graph = Graph.from_coo([1, 2, 0, 3, 3], [0, 0, 1, 1, 2], num_nodes=4)
    batch = PGSampler([-1], seed=0).sample(graph, [0, 1, 2, 3]).torch()
    layer = MeanConv(torch.nn.Linear(3, 5), torch.nn.Linear(3, 5), 5)
    torch.nn.init.normal_(layer.bias)
    x = torch.randn(4, 3)
    got = layer(batch.blocks[0], x[batch.input_nodes])
    heard = {0: [1, 2], 1: [0, 3], 2: [3], 3: []}
    for vertex, neighbours in heard.items():
        expected = layer.own(x[vertex]) + layer.bias
        if neighbours:
            expected = expected + layer.heard(x[neighbours]).mean(0)
        torch.testing.assert_close(got[vertex], expected)


def test_word_sum_is_a_linear_layer_on_indicators(data: Debian) -> None:
    layer = WordSum(data.num_features)
    some = np.arange(0, data.num_nodes, 997)
    bags = Bags.from_words(torch.from_numpy(data.words()[some]), data.num_features)
    expected = torch.from_numpy(data.features()[some]) @ layer.weight
    torch.testing.assert_close(layer(bags), expected)
    torch.testing.assert_close(layer(bags[:5]), expected[:5])


def test_models_have_the_same_layers() -> None:
    sage, mlp = GraphSAGE(512, 58), MLP(512, 58)
    size = sum(p.numel() for p in mlp.parameters())
    heard = sum(p.numel() for c in (sage.first, sage.second) for p in c.heard.parameters())
    assert sum(p.numel() for p in sage.parameters()) == size + heard


# ---- the picture -------------------------------------------------------------------------------


def test_neighbourhood_is_what_was_sampled(data: Debian, graph: Graph) -> None:
    around = sample_neighbourhood(data, graph, "git", seed=5)
    assert data.names[around.nodes[0]] == "git"
    assert around.rings[0] == 0
    assert around.rings == sorted(around.rings)
    assert set(around.rings) == {0, 1, 2}
    assert len(set(around.nodes)) == len(around.nodes) == len(around.angles)
    # Places that are apart, for all but the seed.
    places = {
        (ring, round(angle, 6)) for ring, angle in zip(around.rings, around.angles, strict=True)
    }
    assert len(places) == len(around.nodes)
    relations = {
        (data.names[s], data.kinds[k], data.names[d])
        for s, k, d in zip(data.src, data.kind, data.dst, strict=True)
        if "git" in (data.names[s], data.names[d])
    }
    of_seed = [edge for edge in around.edges if edge.dst == 0 and edge.hop == 1]
    assert len(of_seed) == FANOUTS[-1]
    for edge in of_seed:
        name = data.names[around.nodes[edge.src]]
        assert {(name, edge.kind, "git"), ("git", edge.kind, name)} & relations
        assert around.rings[edge.src] == 1


def test_neighbourhood_of_a_package_without_relations(
    data: Debian, graph: Graph, tmp_path: Path
) -> None:
    degree = np.bincount(np.concatenate([data.src, data.dst]), minlength=data.num_nodes)
    alone = data.names[int(np.flatnonzero(degree == 0)[0])]
    around = sample_neighbourhood(data, graph, alone)
    assert (around.rings, around.edges) == ([0], [])
    result = Run(Outcome([0.2], 0.2, 10, 1.0), Outcome([0.1], 0.1), 1e6)
    draw(result, data, around, tmp_path / "alone.svg")
    assert "<svg" in (tmp_path / "alone.svg").read_text()


def test_neighbourhood_of_nothing(data: Debian, graph: Graph) -> None:
    with pytest.raises(ValueError, match="expected the name of a package, got 'none-such'"):
        sample_neighbourhood(data, graph, "none-such")


# ---- the notebook ------------------------------------------------------------------------------


@pytest.mark.once
def test_notebook_runs_from_top_to_bottom(tmp_path: Path) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(
        notebook, timeout=240, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    printed = "".join(
        output.get("text", "") for cell in cells for output in cell.outputs if "text" in output
    )
    sage, mlp = accuracies(printed)
    assert sage >= 74
    assert sage >= mlp + 10
    assert any("image/png" in output.get("data", {}) for output in cells[-1].outputs)
    assert not [o for cell in cells for o in cell.outputs if o.get("name") == "stderr"]
