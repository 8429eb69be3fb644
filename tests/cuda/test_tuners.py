"""Options of loaders that are "auto" on a device: batches do not depend on the choices."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from torch_graphs import csc

import pygsampler as pgs

torch = pytest.importorskip("torch", reason="needs torch")

from pygsampler._loader import cache_tuner, prefetch_tuner, share_tuner  # noqa: E402
from pygsampler.torch import DataLoader  # noqa: E402
from tests.support.assertions import contents  # noqa: E402

# The measurements and the free memory are replaced: a GPU would choose by its own.
pytestmark = [pytest.mark.backends("emulator"), pytest.mark.usefixtures("host_tensors")]
SEEDS = torch.arange(900)
SAMPLER = pgs.PGSampler([5, 3], seed=3)
OPTIONS: dict[str, Any] = {"batch_size": 32, "shuffle": True, "seed": 3}


@pytest.fixture
def graph() -> pgs.Graph:
    return pgs.Graph.from_csc(*csc(1000, 29))


@pytest.fixture
def there(graph: pgs.Graph) -> pgs.Graph:
    return graph.to("cuda")


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of the device that are free, as the tuner of caches finds them."""
    room = [12_000 + 4 * 2000 + 10_000_000 // 10]
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (room[0], 10_000_000))
    monkeypatch.setattr(cache_tuner, "LEAST", 0)
    return room


def test_depth_changes_between_epochs(
    graph: pgs.Graph, there: pgs.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefetch_tuner, "FIRST", 1)
    monkeypatch.setattr(prefetch_tuner, "WAITING", -1.0)
    options: dict[str, Any] = {"batch_size": 32, "shuffle": True}
    expected = DataLoader(graph, SEEDS[:307], SAMPLER, prefetch=0, **options)
    loader = DataLoader(there, SEEDS[:307], SAMPLER, prefetch="auto", device="auto", **options)
    for depth in (4, 8, 8):
        assert loader.state_dict()["prefetch"] == depth
        assert contents(loader) == contents(expected)
    text = loader.explain()
    assert "since the graph is there" in text
    assert '"auto" is 8' in text
    assert pgs.cuda.memory_stats(0)["flights"] == 0


def test_a_cache_is_chosen_once_and_changes_no_rows(there: pgs.Graph, free: list[int]) -> None:
    tables = {"x": torch.randn(1000, 4), "wide": torch.randn(1000, 8)}
    options = {**OPTIONS, "features": tables, "cache": "auto"}

    def check(loader: DataLoader, epochs: int) -> None:
        for epoch in range(epochs):
            plain = DataLoader(there, SEEDS, [5, 3], **OPTIONS)
            plain.set_epoch(epoch)
            for expected, batch in zip(plain, loader, strict=True):
                assert torch.equal(batch.input_nodes, expected.input_nodes)
                for name, rows in tables.items():
                    assert torch.equal(batch.features[name], rows[batch.input_nodes])

    loader: Any = DataLoader(there, SEEDS, [5, 3], **options)
    assert "until a few batches are measured" in loader.explain()
    assert "cache" not in loader.state_dict()
    batches = iter(loader)
    for _ in range(15):
        next(batches)
    assert loader._cache_tuner.rows is None
    next(batches)
    rows = loader._cache_tuner.rows
    # Rows fill the free memory, less a tenth of all: 16 and 32 bytes each, and the caches' arrays.
    assert set(rows) == {"x", "wide"} and 0 < rows["x"] <= rows["wide"] < 1000
    list(batches)
    counted = loader.stats()["features"]
    assert counted["x"]["rows"] == counted["wide"]["rows"]
    assert 0 < counted["x"]["hits"] < counted["x"]["rows"]
    assert sum(counted["x"]["bytes"].values()) == 16 * counted["x"]["rows"]
    text = loader.explain()
    assert f"has {rows['x']} of 1000 rows of 'x'" in text
    assert "after 16 batches, by epoch 0" in text
    free[0] = 10_000_000
    loader.set_epoch(0)
    check(loader, 2)
    assert loader._cache_tuner.rows == rows
    state = json.loads(json.dumps(loader.state_dict()))
    assert state["cache"] == rows
    # Another begins with them, and a copy has them.
    other: Any = DataLoader(there, SEEDS, [5, 3], **options)
    other.load_state_dict(state)
    next(iter(other))
    assert other._fetcher._nodes["x"].cached == rows["x"] and "loaded state" in other.explain()
    again = pickle.loads(pickle.dumps(loader))
    assert again._cache_tuner.rows == rows and again._fetcher._nodes["x"].cached == rows["x"]
    bad = DataLoader(there, SEEDS, [5, 3], **options)
    for wrong, error in ((5, TypeError), ({"x": -1}, ValueError)):
        with pytest.raises(error, match=r"state\['cache'\]"):
            bad.load_state_dict({**state, "cache": wrong})


@pytest.mark.parametrize(
    ("size", "room", "cached", "expected"),
    [(300, 10_000_000, 0, 1000), (300, 0, 0, 0), (32, 10_000_000, 7, 7)],
    ids=["short epochs", "no memory", "a cache"],
)
def test_when_no_cache_is_chosen(
    there: pgs.Graph, free: list[int], size: int, room: int, cached: int, expected: int
) -> None:
    free[0] = room
    table = pgs.Features.from_tensor(torch.randn(1000, 4))
    table = table.cache(rows=cached) if cached else table
    options: dict[str, Any] = {**OPTIONS, "batch_size": size, "features": {"x": table}}
    loader: Any = DataLoader(there, SEEDS, [5, 3], cache="auto", **options)
    list(loader)
    assert loader._fetcher._nodes["x"].cached == expected
    assert loader._cache_tuner.is_done
    assert ('cache: "auto" is none' in loader.explain()) == (expected != 1000)


def test_a_cache_of_static_batches_is_chosen_after_an_epoch(
    there: pgs.Graph, free: list[int]
) -> None:
    free[0], x = 10_000_000, torch.randn(1000, 4)
    options: dict[str, Any] = {**OPTIONS, "batch_size": 64}
    fixed: Any = DataLoader(
        there, SEEDS[:307], [5, 3], static=True, features={"x": x}, cache="auto", **options
    )
    for epoch in range(3):
        eager = DataLoader(there, SEEDS[:307], [5, 3], **options)
        eager.set_epoch(epoch)
        for expected, batch in zip(eager, fixed, strict=True):
            assert torch.equal(batch.x[: len(expected.input_nodes)], x[expected.input_nodes])
        assert fixed._fetcher._nodes["x"].cached == (1000 if epoch else 0)
        assert fixed._static.epochs.remade >= (1 if epoch else 0)
        counted = fixed.stats()["features"]["x"]
        assert counted.get("hits", 0) == (counted["rows"] if epoch else 0)


def test_a_share_is_chosen_by_epochs_and_changes_no_batch(
    graph: pgs.Graph, there: pgs.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(share_tuner, "LEAST", 1)
    options: dict[str, Any] = {"batch_size": 32, "shuffle": True}
    expected = DataLoader(graph, SEEDS[:307], SAMPLER, prefetch=0, **options)
    loader: Any = DataLoader(there, SEEDS[:307], SAMPLER, gpu_share="auto", **options)
    for epoch, share in enumerate((1.0, 1.0, 0.5, 0.25)):
        assert loader._share_tuner.share == share
        assert "gpu_share" not in loader.state_dict()
        assert f'"auto" is {share:g} in the next epoch' in loader.explain()
        if epoch == 2:
            next(iter(loader))  # An epoch that is left is no measurement.
            loader.set_epoch(2)
        assert contents(loader) == contents(expected)
    choice = loader.state_dict()["gpu_share"]
    assert choice in (1.0, 0.5, 0.25)
    text = loader.explain()
    assert f'gpu_share: "auto" is {choice:g}, since a step took' in text and "with 0.25" in text
    other: Any = DataLoader(there, SEEDS[:307], SAMPLER, gpu_share="auto", **options)
    other.load_state_dict({**loader.state_dict(), "gpu_share": 0.5})
    assert other._share_tuner.share == 0.5 and "as the loaded state has it" in other.explain()
    for wrong in (2, "all", True):
        with pytest.raises((TypeError, ValueError), match=r"state\['gpu_share'\]: expected a numb"):
            other.load_state_dict({**loader.state_dict(), "gpu_share": wrong})
    other.gpu_share = 0.5
    assert other._share_tuner is None and "gpu_share" not in other.explain()
