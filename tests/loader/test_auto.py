"""Options of loaders that are "auto": batches do not depend on them, and states keep them."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_graphs import csc

import pygsampler as pgs
from pygsampler._loader import arguments, prefetch_tuner, share_tuner
from pygsampler._loader.cache_tuner import LEAST, rows_within
from pygsampler._loader.prefetch import prefetch_in_order
from pygsampler._loader.prefetch_tuner import (
    Measurement,
    PrefetchTuner,
    choose_depth,
    choose_depth_on_gpu,
)
from pygsampler._loader.share_tuner import ShareTuner
from pygsampler._loader.stats import EpochStats
from pygsampler.torch import DataLoader, LinkLoader, NegativeSampling
from tests.loader.test_prefetch import Desk
from tests.loader.test_stats import Slow
from tests.support.assertions import content, contents

NODES = 2000
SEEDS = torch.arange(1200)
X = torch.rand(NODES, 8, generator=torch.Generator().manual_seed(1))
GB = 1 << 30
DEPTHS = (1, 9, 3, 2, 30, 4)


@pytest.fixture(scope="module")
def graph() -> pgs.Graph:
    return pgs.Graph.from_csc(*csc(NODES, 17))


def measurement(**figures: Any) -> Measurement:
    usual: dict[str, Any] = {
        **{"epoch": 0, "batches": 16, "work": 0.01, "step": 0.02, "waiting": 0.0},
        **{"idle": 16.0, "stages": 1, "size": 1 << 20, "free": 8 * GB},
    }
    return Measurement(**usual | figures)


@pytest.fixture
def changing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has each epoch on the CPU change its depth in every second step."""
    depths = itertools.cycle(DEPTHS)
    monkeypatch.setattr(prefetch_tuner, "choose_depth", lambda *arguments: (next(depths), ""))
    monkeypatch.setattr(prefetch_tuner, "num_cores", lambda: 16)
    for name, value in (("FIRST", 2), ("LONGEST", 2), ("LEAST", 1)):
        monkeypatch.setattr(prefetch_tuner, name, value)


@pytest.mark.parametrize(
    ("figures", "depth", "expected"),
    [
        # The loop is slower than a core, and does not wait.
        ({}, 4, (4, "")),
        # By Little's law 4 in work, half as many more, and one.
        ({"step": 0.0025}, 4, (7, "")),
        ({"step": 0.0025, "stages": 2}, 4, (13, "")),
        ({"step": 0.0025, "waiting": 0.3}, 4, (8, "")),
        ({"step": 0.0025, "waiting": 0.3}, 16, (32, "")),
        # What was chosen stays.
        ({}, 20, (20, "")),
        # Little waiting is noise.
        ({"waiting": 0.019}, 4, (4, "")),
        ({"waiting": 0.021}, 4, (8, "")),
        # Sampling is slower than the loop on all cores.
        ({"step": 1e-4, "waiting": 0.9}, 4, (25, "cores")),
        ({"step": 1e-4, "waiting": 0.9, "idle": 1.0}, 4, (4, "cores")),
        ({"waiting": 0.9, "idle": 2.0}, 4, (4, "cores")),
        # Of a sampler that does not say how long it works.
        ({"work": None, "waiting": 0.3}, 8, (16, "")),
        ({"work": None}, 4, (4, "")),
        ({"step": 0.0}, 4, (4, "")),
        # A quarter of the memory has room for 3 ahead, and for none.
        ({"size": GB // 2}, 4, (3, "memory")),
        ({"size": 16 * GB}, 4, (1, "memory")),
        ({"size": GB // 2, "step": 0.0025}, 4, (3, "memory")),
        ({"size": 0}, 4, (4, "")),
    ],
)
def test_a_depth_follows_from_what_was_measured(
    figures: dict[str, Any], depth: int, expected: tuple[int, str]
) -> None:
    assert choose_depth(measurement(**figures), depth, 64) == expected


def test_a_depth_is_at_most_that_of_the_epoch() -> None:
    assert choose_depth(measurement(step=1e-3), 4, 10) == (10, "cores")


def test_a_depth_on_a_gpu_is_of_whole_groups() -> None:
    assert choose_depth_on_gpu(measurement(), 4) == (4, "")
    assert choose_depth_on_gpu(measurement(waiting=0.1), 4) == (8, "")
    assert choose_depth_on_gpu(measurement(waiting=0.1), 8) == (8, "")
    assert choose_depth_on_gpu(measurement(waiting=0.1, size=GB), 4) == (1, "memory")


def test_a_queue_follows_its_tuner(changing: None) -> None:
    """Never more are ahead than was chosen last, and as many as that in the next step."""
    desk, tuner, meter = Desk(), PrefetchTuner(), EpochStats()
    with meter:
        ahead = prefetch_in_order(desk.submit, 200, 4, meter=meter, tuner=tuner.begin(meter))
        sizes = set()
        for expected, result in enumerate(ahead):
            assert result == expected
            before = len(desk.submitted) - expected - 1
            assert before <= max(DEPTHS)
            meter.batches += 1
            sizes.add(meter.pacer.high)
            assert before >= min(meter.pacer.high, 199 - expected)
    assert sizes == {*DEPTHS}
    assert desk.submitted == desk.ended == list(range(200))


@pytest.mark.parametrize("seconds", [0.0, 0.0005, 0.004])
@pytest.mark.parametrize("rows", [False, True])
def test_batches_do_not_depend_on_the_depth(
    graph: pgs.Graph, seconds: float, rows: bool, changing: None
) -> None:
    options: dict[str, Any] = {"batch_size": 40, "shuffle": True, "seed": 3}
    if rows:
        options |= {"features": {"x": X}, "labels": torch.arange(NODES)}
    expected, loader = (
        DataLoader(graph, SEEDS, [4, 3], prefetch=prefetch, **options) for prefetch in (0, "auto")
    )
    for _ in range(2):
        found = []
        for batch in loader:
            found.append(content(batch))
            time.sleep(seconds)
        assert found == contents(expected)
    assert loader.stats()["batches"] == len(loader)


def test_links_do_not_depend_on_the_depth(graph: pgs.Graph, changing: None) -> None:
    def contents(prefetch: Any) -> list[Any]:
        loader = LinkLoader(
            graph, torch.arange(900), [3], batch_size=30, negative_sampling=NegativeSampling(),
            seed=2, shuffle=True, prefetch=prefetch,
        )  # fmt: skip
        return [
            (content(batch.minibatch), batch.input_id.tolist(), batch.edge_label_index.tolist())
            for batch in loader
        ]

    assert contents("auto") == contents(0)


def test_types_do_not_depend_on_the_depth(changing: None) -> None:
    kinds = [("a", "to", "b"), ("b", "of", "a")]
    random = torch.Generator().manual_seed(4)
    ends = {kind: torch.randint(0, 300, (2, 2000), generator=random) for kind in kinds}
    graph = pgs.Graph.from_coo(
        {kind: tuple(pair) for kind, pair in ends.items()}, num_nodes={"a": 300, "b": 300}
    )

    def contents(prefetch: Any) -> list[Any]:
        loader = DataLoader(
            graph, {"a": torch.arange(300)}, [3, 2], batch_size=10, seed=2, prefetch=prefetch,
            features={"x": {"a": X[:300], "b": X[300:600]}},
        )  # fmt: skip
        return [
            {
                kind: (ids.tolist(), batch.x[kind].tolist())
                for kind, ids in batch.input_nodes.items()
            }
            for batch in loader
        ]

    assert contents("auto") == contents(0)


@pytest.mark.parametrize("step", [0, 1, 7, 30])
def test_a_state_has_what_was_chosen(graph: pgs.Graph, step: int, changing: None) -> None:
    def loader(prefetch: Any) -> DataLoader[Any]:
        options: dict[str, Any] = {"batch_size": 40, "shuffle": True, "seed": 3}
        return DataLoader(graph, SEEDS, [4, 3], prefetch=prefetch, **options)

    every = contents(loader(0))
    first = loader("auto")
    batches = iter(first)
    found = [content(next(batches)) for _ in range(step)]
    state = json.loads(json.dumps(first.state_dict()))
    batches.close()
    assert state["prefetch"] in (4, *DEPTHS)
    for other in (loader("auto"), loader(2)):
        other.load_state_dict(state)
        if other.prefetch == "auto":
            assert other.state_dict() == state
        rest = [] if step == len(every) else contents(other)
        assert found + rest == every
    # A state from before there was the option, and those of loaders without it.
    del state["prefetch"]
    other = loader("auto")
    other.load_state_dict(state)
    assert other.state_dict()["prefetch"] == 4
    assert "prefetch" not in loader(4).state_dict()
    for wrong in ("8", 0, 2.5, True):
        with pytest.raises((TypeError, ValueError), match=r"state\['prefetch'\]: expected"):
            other.load_state_dict({**state, "prefetch": wrong})


def test_a_state_of_a_larger_machine_is_bounded(
    graph: pgs.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = DataLoader(graph, SEEDS, [2], batch_size=99, seed=1, prefetch="auto")
    monkeypatch.setattr(prefetch_tuner, "num_cores", lambda: 3)
    loader.load_state_dict({**loader.state_dict(), "prefetch": 1000})
    assert loader.state_dict()["prefetch"] == 12
    assert len(list(loader)) == len(loader)


def test_it_is_an_option_as_others_are(graph: pgs.Graph, changing: None) -> None:
    loader = DataLoader(graph, SEEDS, [2], batch_size=30, seed=1)
    assert "prefetch=4)" in repr(loader)
    loader.prefetch = "auto"
    assert loader.prefetch == "auto"
    assert "prefetch='auto' (4))" in repr(loader)
    list(loader)
    depth = loader.state_dict()["prefetch"]
    assert f"prefetch='auto' ({depth}))" in repr(loader)
    copied = pickle.loads(pickle.dumps(loader))
    assert repr(copied) == repr(loader)
    copied.prefetch = 2
    assert "prefetch=2)" in repr(copied)
    assert loader.prefetch == "auto"
    for wrong in ("automatic", "AUTO", ("auto", 4)):
        with pytest.raises(TypeError, match=r"prefetch.*: expected an integer"):
            loader.prefetch = wrong  # type: ignore[assignment]


def test_a_loop_that_waits_gets_more_ahead(graph: pgs.Graph) -> None:
    """A batch is there 30 milliseconds after it was begun, and the loop takes no time."""
    loader = DataLoader(graph, SEEDS, Slow(0.03, beside=True), batch_size=20, prefetch="auto")
    list(loader)
    chosen = loader.state_dict()["prefetch"]
    assert 4 <= chosen <= max(4, 4 * prefetch_tuner.num_cores())
    text = loader.explain()
    assert f'prefetch: "auto" is {chosen}, by ' in text
    assert "batches of epoch 0" in text
    assert "help: " in text


def test_it_says_what_is_not_measured(graph: pgs.Graph) -> None:
    loader = DataLoader(graph, SEEDS, [3], batch_size=20, seed=1, prefetch="auto")
    text = loader.explain()
    assert '"auto" is 4 until a few batches are measured' in text
    assert "waiting: not measured yet" in text
    list(loader)
    text = loader.explain()
    assert "one core samples a batch in" in text
    assert "cores are idle" in text
    assert "for 60 batches of epoch 0" in text
    assert "not measured" not in text


@pytest.mark.parametrize("batches", [5, 6])
def test_short_epochs_are_measured_when_they_end(graph: pgs.Graph, batches: int) -> None:
    loader = DataLoader(graph, SEEDS[:batches], [3], batch_size=1, seed=1, prefetch="auto")
    list(loader)
    assert ("by 4 batches of epoch 0" in loader.explain()) == (batches == 6)


def test_fixed_options_are_explained(graph: pgs.Graph) -> None:
    loader = DataLoader(graph, SEEDS, Slow(0.002, beside=True), batch_size=20, prefetch=1)
    assert loader.explain().splitlines()[:2] == ["device: 'cpu', fixed", "prefetch: 1, fixed"]
    list(loader)
    assert "waiting: " in loader.explain()
    assert "help: sampling is slowest; more threads" in loader.explain()
    loader.prefetch = (1, 3)
    assert "prefetch: (1, 3), fixed" in loader.explain()


def test_a_traced_epoch_is_measured_too(graph: pgs.Graph, tmp_path: Path) -> None:
    loader = DataLoader(
        graph, SEEDS, [3], batch_size=20, seed=1, prefetch="auto", features={"x": X}
    )
    loader.trace(tmp_path / "trace.json")
    list(loader)
    spans = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    for stage in ("sample", "gather"):
        assert sum(span["name"] == stage for span in spans) == len(loader)
    assert "one core samples and reads a batch in" in loader.explain()


def test_without_a_gpu_the_device_is_the_cpu(
    graph: pgs.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    loader = DataLoader(graph, SEEDS, [3], batch_size=20, seed=1, device="auto")
    assert loader.graph is graph
    assert "device: \"auto\" is 'cpu', since torch finds no GPU" in loader.explain()


@pytest.mark.parametrize("missing", [0, 1])
def test_a_graph_goes_where_half_of_the_memory_has_room(
    graph: pgs.Graph, monkeypatch: pytest.MonkeyPatch, missing: int
) -> None:
    size = graph.indptr.nbytes + graph.indices.nbytes
    free = 2 * size - missing
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    # Torch keeps a third of it for later, beside what it uses.
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda index: (free - free // 3, 4 * free))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda index: free // 3 + 5000)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda index: 5000)
    monkeypatch.setattr(arguments, "_check", lambda index: None)
    monkeypatch.setattr("pygsampler._arrays.devices._torch_cuda", lambda: None)
    device, reason = arguments.choose_device(graph)
    assert device == ("cpu" if missing else "cuda:0")
    assert ("more than 50%" if missing else "at most 50%") in reason


def test_a_gpu_that_cannot_be_used_is_left(
    graph: pgs.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(index: int) -> None:
        raise pgs.errors.CudaError("device: expected a process that may use it")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(arguments, "_check", fail)
    monkeypatch.setattr("pygsampler._arrays.devices._torch_cuda", lambda: None)
    assert arguments.choose_device(graph)[0] == "cpu"


def test_caches_share_what_is_free_by_their_bytes() -> None:
    table, whole = (1_000_000, 400), 400_000_000
    # A place beside each row, its number, and the address of each row.
    assert rows_within([table], 10 * whole) == [1_000_000]
    (half,) = rows_within([table], whole // 2)
    assert 0.9 * 500_000 < half < 500_000
    two = rows_within([table, (2_000_000, 400)], whole)
    assert two[1] == pytest.approx(2 * two[0], rel=1e-3) and 0.9 * whole < 400 * sum(two) < whole
    # Nothing where there is no room, or hardly any; rows of no bytes have none.
    for room in (-5, 0, LEAST):
        assert rows_within([table, (100, 4)], room) == [0, 0]
    assert rows_within([(100, 0)], 1 << 30) == [0] and rows_within([], 1 << 30) == []


@pytest.mark.parametrize(
    ("milliseconds", "choice"),
    [((2.0, 3.0, 4.0), 1.0), ((2.0, 1.9, 1.97), 0.5), ((2.0, 1.97, 1.5), 0.25), ((2, 1.99, 2), 1)],
)
def test_the_share_with_the_shortest_steps_is_chosen(
    milliseconds: tuple[float, ...], choice: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(share_tuner, "settled", lambda device: clock[0])

    def epoch(tuner: ShareTuner, step: float, batches: int = 100, depth: int = 4) -> None:
        tuner.begin(0, depth)
        clock[0] += step / 1e3 * batches
        tuner.finish(0, batches, tuner.share)

    tuner = ShareTuner()
    # Of an epoch of few batches, and of the first, nothing is taken.
    for batches in (3, 100):
        assert tuner.share == 1.0
        epoch(tuner, 0.1, batches)
    # Nor of those with another number of batches ahead.
    epoch(tuner, 0.1, depth=8)
    assert tuner.share == 0.5
    tuner.begin(0, 4)
    for share, step in zip((1.0, 0.5, 0.25), milliseconds, strict=True):
        assert (tuner.share, tuner.choice) == (share, None)
        # A copy goes on by itself.
        other = copy.copy(tuner)
        for _ in range(3):
            epoch(other, 9.0 - other.share)
        epoch(tuner, step)
    assert tuner.share == tuner.choice == choice
    epoch(tuner, 0.1)
    assert tuner.share == choice


def test_a_share_of_a_gpu_is_of_no_effect_on_the_cpu(graph: pgs.Graph) -> None:
    loader = DataLoader(graph, SEEDS, [3], batch_size=50, gpu_share="auto")
    for _ in range(2):
        assert len(list(loader)) == len(loader)
    assert 'gpu_share: "auto" has no effect, since batches are on the CPU' in loader.explain()
    assert "gpu_share" not in loader.state_dict()
    again = pickle.loads(pickle.dumps(loader))
    assert again.gpu_share == "auto"
    assert again._share_tuner is not loader._share_tuner


def test_what_is_no_choice_of_a_cache(graph: pgs.Graph) -> None:
    for wrong in (True, 100, "all"):
        with pytest.raises(ValueError, match=r'cache: expected "auto" or None, got .*cache\(rows'):
            DataLoader(graph, SEEDS, [3], batch_size=9, cache=wrong)  # type: ignore[call-overload]
    typed = pgs.Graph.from_coo({("a", "to", "a"): ([0], [1])}, num_nodes={"a": 3})
    with pytest.raises(ValueError, match="cache: expected None for a heterogeneous graph"):
        DataLoader(typed, {"a": [0]}, [3], batch_size=9, cache="auto")
    loader = DataLoader(graph, SEEDS, [3], batch_size=100, cache="auto", features={"x": X})
    assert len(list(loader)) == len(loader) and "batches are on the CPU" in loader.explain()
    with pytest.raises(AttributeError, match="cache: expected no assignment"):
        loader.cache = None
