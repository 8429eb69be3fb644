"""Where ``inference`` reads and writes rows, its memory, and runs that were stopped."""

from __future__ import annotations

import functools
import json
import logging
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inference_cases import (
    NODES,
    WIDTH,
    PairConv,
    SAGEConv,
    random_graph,
    random_rows,
    torch,
)

import pygsampler as pgs
from pygsampler._inference.finished_layers import fingerprint
from pygsampler._inference.layer_runs import available_memory
from pygsampler._inference.tables import NodeTable

np = pytest.importorskip("numpy", reason="needs NumPy")

inference = functools.partial(pgs.inference, progress=False)


def model(seed: int = 0) -> list[Any]:
    torch.manual_seed(seed)
    return [SAGEConv(WIDTH, 8), torch.relu, PairConv(8, 6), torch.relu, SAGEConv(6, 3)]


def saved(path: Path, x: Any) -> Path:
    np.save(path, x.numpy())
    return path


def test_memory_that_torch_keeps_for_later_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of it by default, so that layers after a training need no more ranges than before."""
    for name, size in (("memory_reserved", 900), ("memory_allocated", 100)):
        monkeypatch.setattr(torch.cuda, name, lambda index, size=size: size)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda index: (200, 4000))
    assert available_memory(torch.device("cuda", 0)) == (200 + 900 - 100) // 2


@pytest.mark.parametrize("memory", [None, 3000])
def test_features_are_read_wherever_they_are(tmp_path: Path, memory: int | None) -> None:
    x, graph = random_rows(), random_graph()
    expected = inference(model(), graph, x, memory=memory)
    path = saved(tmp_path / "x.npy", x)
    graph.with_data(node_data={"x": x}).save(tmp_path / "graph.pgs")
    for features in (
        x.numpy(),
        path,
        str(path),
        np.load(path, mmap_mode="r"),
        pgs.Features.from_tensor(x),
        pgs.Features.open(tmp_path / "graph.pgs", "x"),
        torch.nn.Parameter(x),
        x.t().contiguous().t(),
        x.tolist(),
        x.numpy()[::-1].copy()[::-1],
        x.numpy().astype(">f4"),
    ):
        assert torch.equal(inference(model(), graph, features, memory=memory), expected)


@pytest.mark.parametrize("batch_size", [None, 7])
def test_functions_in_place_leave_the_features(tmp_path: Path, batch_size: int | None) -> None:
    graph, x, conv = random_graph(), random_rows(), SAGEConv(WIDTH, 3)
    expected = inference([conv], graph, x.relu(), batch_size=batch_size)
    layers = [torch.nn.ReLU(inplace=True), conv]
    for features in (x, saved(tmp_path / "x.npy", x)):
        rows = inference(layers, graph, features, batch_size=batch_size)
        torch.testing.assert_close(rows, expected)
    assert torch.equal(x, random_rows())
    rows = inference([torch.nn.Identity()], graph, x)
    rows += 1
    assert torch.equal(x, random_rows())


def test_other_features_are_refused(tmp_path: Path) -> None:
    x = random_rows()
    np.savez(tmp_path / "x.npz", x=x.numpy())
    for features in (
        x.to_sparse(),
        tmp_path / "x.npz",
        np.full((NODES, WIDTH), "a"),
        np.full((NODES, WIDTH), None),
    ):
        with pytest.raises(TypeError, match="features: expected a"):
            inference(model(), random_graph(), features)
    with pytest.raises(ValueError, match="out: expected an array that torch takes"):
        inference(model(), random_graph(), x, out=np.empty((NODES, 3), np.float32)[::-1])


def test_a_graph_of_a_file_is_mapped(tmp_path: Path) -> None:
    graph = random_graph()
    graph.save(tmp_path / "graph.pgs")
    with pgs.Graph.open(tmp_path / "graph.pgs") as opened:
        rows = inference(model(), opened, random_rows(), batch_size=9)
    assert torch.equal(rows, inference(model(), graph, random_rows(), batch_size=9))


@pytest.mark.parametrize("memory", [None, 3000])
def test_results_go_where_they_are_asked_for(tmp_path: Path, memory: int | None) -> None:
    arguments = model(), random_graph(), random_rows()
    expected = inference(*arguments, memory=memory)
    for out in (
        torch.empty(NODES, 3),
        np.empty((NODES, 3), np.float32),
        np.lib.format.open_memmap(tmp_path / "own.npy", "w+", np.float32, (NODES, 3)),
    ):
        assert inference(*arguments, memory=memory, out=out) is out
        assert torch.equal(torch.as_tensor(np.asarray(out)), expected)
    path = inference(*arguments, memory=memory, out=tmp_path / "rows.npy")
    assert path == tmp_path / "rows.npy"
    assert np.array_equal(np.load(path), expected.numpy())
    assert sorted(each.name for each in tmp_path.iterdir()) == ["own.npy", "rows.npy"]


@pytest.mark.parametrize("batch_size", [None, 7])
def test_a_result_may_take_the_place_of_the_features(batch_size: int | None) -> None:
    graph, x = random_graph(), random_rows()
    conv = SAGEConv(WIDTH, WIDTH)
    for layers in ([conv], [conv, torch.relu, conv]):
        expected = inference(layers, graph, x, batch_size=batch_size)
        rows = random_rows()
        assert inference(layers, graph, rows, out=rows, batch_size=batch_size) is rows
        assert torch.equal(rows, expected)
        # The first rows are apart from the others, which are the features.
        both = torch.cat([x, x]).numpy()
        inference(layers, graph, both[NODES:], out=both[:NODES], batch_size=batch_size)
        assert np.array_equal(both, np.concatenate([expected.numpy(), x.numpy()]))


def test_a_result_may_have_fewer_bits_than_the_model() -> None:
    arguments = model(), random_graph(), random_rows()
    out = torch.empty(NODES, 3, dtype=torch.float16)
    inference(*arguments, out=out)
    assert torch.equal(out, inference(*arguments).half())


def test_a_file_is_complete_or_not_there(tmp_path: Path) -> None:
    def fails(block: Any, x: Any) -> Any:
        if block.dst_nodes[0] > 0:
            raise RuntimeError("no more")
        return x[: block.num_dst_nodes]

    with pytest.raises(RuntimeError, match="no more"):
        inference(fails, random_graph(), random_rows(), batch_size=9, out=tmp_path / "rows.npy")
    assert not list(tmp_path.iterdir())
    with pytest.raises(TypeError, match="bfloat16"):
        inference(
            lambda block, x: x[: block.num_dst_nodes].bfloat16(),
            random_graph(),
            random_rows(),
            out=tmp_path / "rows.npy",
        )
    with pytest.raises(ValueError, match="which the model gives"):
        inference(model(), random_graph(), random_rows(), out=torch.empty(NODES, 4))


def test_layers_without_room_are_in_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    caplog.set_level(logging.INFO, logger="pygsampler")
    rows = inference(model(), random_graph(), random_rows(), memory=1)
    assert "120 nodes in 120 ranges" in caplog.text
    assert caplog.text.count(f"are in a file in {tmp_path}") == 2
    assert not list(tmp_path.iterdir())
    expected = inference(model(), random_graph(), random_rows())
    torch.testing.assert_close(rows, expected, rtol=1e-4, atol=1e-5)


BOUNDED = """
    import numpy as np, torch, pygsampler as pgs

    NODES, EDGES, WIDTH = 200_000, 800_000, 64
    random = np.random.default_rng(0)
    pgs.Graph.from_coo(
        random.integers(NODES, size=EDGES), random.integers(NODES, size=EDGES), num_nodes=NODES
    ).save("graph.pgs")
    np.save("x.npy", random.random((NODES, WIDTH), np.float32))

    def anonymous():
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("RssAnon"))

    most = 0

    def look(done, total):
        global most
        most = max(most, anonymous())

    layer = torch.nn.Linear(WIDTH, WIDTH)
    step = lambda block, x_src, x_dst: layer(x_dst + block.mean(x_src))
    graph = pgs.Graph.open("graph.pgs")
    pgs.inference(step, pgs.Graph.from_coo([0], [0]), torch.ones(1, WIDTH), progress=None)
    before = anonymous()
    pgs.inference(
        [step, torch.relu, step, torch.relu, step], graph, "x.npy", out="rows.npy",
        memory=8 << 20, progress=look,
    )
    print(most - before)
"""


def test_memory_is_bounded_where_all_is_in_files(run_python: Callable[..., str]) -> None:
    """The rows of one layer take 51 MB, and the graph 8."""
    assert int(run_python(BOUNDED)) < 24 << 10


def stopped(layers: list[Any], place: int, node: int) -> list[Any]:
    """The layers, of which one raises when it comes to some node."""
    before = layers[place].forward

    def forward(block: Any, x: Any) -> Any:
        if int(block.dst_nodes[-1]) >= node:
            raise KeyboardInterrupt
        return before(block, x)

    layers[place].forward = forward
    return layers


@pytest.mark.parametrize(("place", "node"), [(0, 0), (0, 60), (4, 0), (4, 119)])
def test_a_stopped_run_goes_on_after_its_last_layer(tmp_path: Path, place: int, node: int) -> None:
    graph, x = random_graph(), random_rows()
    expected = inference(model(), graph, x, batch_size=40, resume=tmp_path / "other")
    with pytest.raises(KeyboardInterrupt):
        inference(
            stopped(model(), place, node), graph, x, batch_size=40, resume=tmp_path / "layers"
        )
    finished = json.loads((tmp_path / "layers" / "manifest.json").read_text())["layers"]
    assert len(finished) == (2 if place else 0)
    calls: list[int] = []
    rows = pgs.inference(
        model(),
        graph,
        x,
        resume=tmp_path / "layers",
        progress=lambda done, total: calls.append(done),
    )
    # Ranges are as large as in the first run.
    assert calls[0] == (NODES if place else 40)
    assert torch.equal(rows, expected)


def test_finished_layers_are_not_computed_again(tmp_path: Path) -> None:
    graph, x = random_graph(), random_rows()
    expected = inference(model(), graph, x, resume=tmp_path)
    layers = stopped(model(), 0, 0)
    assert torch.equal(inference(layers, graph, x, resume=tmp_path), expected)


class Stateful(SAGEConv):
    """A layer with a sparse buffer and an extra state."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        self.register_buffer("matrix", torch.eye(3).to_sparse())

    def get_extra_state(self) -> Any:
        return {"steps": 1}

    def set_extra_state(self, state: Any) -> None:
        pass


def test_runs_of_modules_with_any_state_are_resumed(tmp_path: Path) -> None:
    layer, graph, x = Stateful(WIDTH, 3), random_graph(), random_rows()
    rows = inference([layer], graph, x, resume=tmp_path)
    assert torch.equal(inference([layer], graph, x, resume=tmp_path), rows)
    layer.matrix = 2 * layer.matrix
    with pytest.raises(ValueError, match="the same model"):
        inference([layer], graph, x, resume=tmp_path)


def test_settings_may_be_integers_of_numpy(tmp_path: Path) -> None:
    arguments = model(), random_graph(), random_rows()
    options: dict[str, Any] = {"batch_size": np.int64(40), "memory": np.int64(5000)}
    rows = inference(*arguments, resume=tmp_path, **options)
    assert torch.equal(rows, inference(*arguments, **options))


def test_a_folder_of_another_run_is_refused(tmp_path: Path) -> None:
    graph, x = random_graph(), random_rows()
    inference(model(), graph, x, resume=tmp_path)
    other = pgs.Graph.from_coo(torch.tensor([1]), torch.tensor([2]), num_nodes=NODES)
    for arguments, text in (
        ((model(seed=1), graph, x), "the same model"),
        ((model()[:1], graph, x), "the same model"),
        ((model(), graph, x + 1), "the same features"),
        ((model(), other, x), "the same graph"),
    ):
        with pytest.raises(ValueError, match=text):
            inference(*arguments, resume=tmp_path)
    (tmp_path / "layer0.bin").write_bytes(b"")
    with pytest.raises(ValueError, match=r"layer0\.bin"):
        inference(model(), graph, x, resume=tmp_path)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a").touch()
    with pytest.raises(ValueError, match="empty folder"):
        inference(model(), graph, x, resume=tmp_path / "files")
    for text in ("[]", "{"):
        (tmp_path / "manifest.json").write_text(text)
        with pytest.raises(ValueError, match=r"with another manifest\.json"):
            inference(model(), graph, x, resume=tmp_path)


def test_a_run_that_was_killed_in_its_first_moments_begins_again(tmp_path: Path) -> None:
    (tmp_path / "manifest.tmp").write_text("{")
    rows = inference(model(), random_graph(), random_rows(), resume=tmp_path)
    assert torch.equal(rows, inference(model(), random_graph(), random_rows()))
    assert not (tmp_path / "manifest.tmp").exists()


def test_many_rows_have_a_fingerprint() -> None:
    """The last row of so many is no float of 32 bits."""
    table = NodeTable(torch.zeros((1 << 25) + 4, 1, dtype=torch.int8))
    found = fingerprint("", [], [], [table])
    table.tensor[-1] = 1
    assert fingerprint("", [], [], [table])["features"] != found["features"]


KILLED = """
    import os, signal, sys, torch, pygsampler as pgs
    sys.path.append({folder!r})
    from inference_cases import PairConv, SAGEConv, random_graph, random_rows

    torch.manual_seed(0)
    layers = [SAGEConv(5, 8), torch.relu, PairConv(8, 6), torch.relu, SAGEConv(6, 3)]

    def look(done, total):
        if done >= {node}:
            os.kill(os.getpid(), signal.SIGKILL)

    rows = pgs.inference(
        layers, random_graph(), random_rows(), batch_size=16, resume="layers", progress=look,
        out="rows.npy",
    )
"""


@pytest.mark.parametrize("node", [160, 352])
def test_a_killed_run_gives_the_same_bytes(
    tmp_path: Path, run_python: Callable[..., str], node: int
) -> None:
    folder = str(Path(__file__).parent)
    run_python(KILLED.format(folder=folder, node=node), ends_with=-signal.SIGKILL)
    assert not (tmp_path / "rows.npy").exists()
    arguments = model(), random_graph(), random_rows()
    assert len(json.loads((tmp_path / "layers" / "manifest.json").read_text())["layers"]) > 0
    inference(*arguments, resume=tmp_path / "layers", out=tmp_path / "rows.npy")
    rows = torch.from_numpy(np.load(tmp_path / "rows.npy"))
    assert torch.equal(rows, inference(*arguments, batch_size=16))


def test_rows_of_16_bits_are_kept(tmp_path: Path) -> None:
    layers = [each.bfloat16() if isinstance(each, torch.nn.Module) else each for each in model()]
    arguments = layers, random_graph(), random_rows(dtype=torch.bfloat16)
    expected = inference(*arguments)
    assert expected.dtype == torch.bfloat16
    for _ in range(2):
        assert torch.equal(inference(*arguments, resume=tmp_path), expected)


def test_without_torch_the_package_is_imported(run_python: Callable[..., str]) -> None:
    run_python("""
        import sys
        import pygsampler
        assert "torch" not in sys.modules and "torch_geometric" not in sys.modules
        sys.modules["torch"] = None
        try:
            pygsampler.inference(None, None, None)
        except ImportError as error:
            assert "pip install torch" in str(error)
        else:
            raise AssertionError
    """)
