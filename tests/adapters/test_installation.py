"""``install``: which names become ours, how they come back, and which versions are refused."""

from __future__ import annotations

import logging
import pickle
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import pygsampler as pgs
from pygsampler._adapters import installation

dgl = pytest.importorskip("dgl")
pyg = pytest.importorskip("torch_geometric")


@pytest.fixture(autouse=True)
def undone() -> Iterator[None]:
    yield
    pgs.uninstall()


def names() -> dict[str, Any]:
    """Every attribute of the modules of both frameworks, by module and name."""
    return {
        f"{key}.{name}": value
        for key, module in list(sys.modules.items())
        if key.partition(".")[0] in ("dgl", "torch_geometric")
        for name, value in list(vars(module).items())
    }


def test_every_name_is_ours_and_comes_back() -> None:
    # The adapters import modules of the frameworks.
    import pygsampler.dgl
    import pygsampler.pyg  # noqa: F401

    before = names()
    found = pgs.install()
    assert found.skipped == {}
    for key, framework in installation.FRAMEWORKS.items():
        for module, name in installation._names(framework):
            if f"{module}.{name}" not in before:
                continue
            value = getattr(sys.modules[module], name)
            assert value.__module__.startswith(f"pygsampler.{key}"), (module, name)
            assert found.replaced[f"{module}.{name}"].startswith(f"pygsampler.{key}.")
            own = before[f"{module}.{name}"]
            assert not any(each is own for each in vars(sys.modules[module]).values())
            assert f"{module}.{name}" in repr(found)
    assert (
        found.replaced["torch_geometric.loader.NeighborLoader"] == "pygsampler.pyg.NeighborLoader"
    )
    assert found.replaced["dgl.dataloading.NeighborSampler"] == "pygsampler.dgl.PGSampler"
    pgs.uninstall()
    after = names()
    assert {name for name in before if after[name] is not before[name]} == set()


def test_installed_twice_is_installed_once() -> None:
    before = names()
    first, second = pgs.install(), pgs.install()
    assert first.replaced == second.replaced
    pgs.uninstall()
    pgs.uninstall()
    after = names()
    assert all(after[name] is value for name, value in before.items())


def test_one_framework_leaves_the_other() -> None:
    own = dgl.dataloading.NeighborSampler
    found = pgs.install("pyg")
    assert all(name.startswith("torch_geometric.") for name in found.replaced)
    assert dgl.dataloading.NeighborSampler is own
    assert "dgl.dataloading.NeighborSampler" in pgs.install("dgl").replaced
    assert dgl.dataloading.NeighborSampler is not own


def test_a_loop_of_pyg_samples_by_our_engine() -> None:
    pgs.install("pyg")
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader

    edges = torch.randint(50, (2, 400))
    data = Data(x=torch.rand(50, 4), edge_index=edges, num_nodes=50)
    loader = NeighborLoader(data, [3, 2], batch_size=10, input_nodes=torch.arange(20))
    assert type(loader.node_sampler).__module__.startswith("pygsampler.pyg")
    for batch in loader:
        assert batch.n_id[batch.edge_index].equal(edges[:, batch.e_id])


def test_subclasses_and_pickles_are_pygs_too() -> None:
    plain = pyg.loader.NeighborLoader
    pgs.install("pyg")
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader

    class Marked(NeighborLoader):  # type: ignore[misc]
        def filter_fn(self, out: Any) -> Any:
            batch = super().filter_fn(out)
            batch.is_marked = True
            return batch

    edges = torch.randint(50, (2, 400))
    data = Data(x=torch.rand(50, 4), edge_index=edges, num_nodes=50)
    loader = Marked(data, [3, 2], batch_size=10)
    assert isinstance(loader, NeighborLoader) and isinstance(loader, plain)
    assert all(batch.is_marked for batch in loader)
    restored = pickle.loads(pickle.dumps(NeighborLoader(data, [3, 2], batch_size=10)))
    pgs.uninstall()
    # What was made in between stays ours.
    assert isinstance(loader, pyg.loader.NeighborLoader)
    for batch in restored:
        assert batch.n_id[batch.edge_index].equal(edges[:, batch.e_id])


def test_data_modules_of_lightning_get_our_sampler() -> None:
    pgs.install("pyg")
    module = pyg.data.lightning.datamodule
    assert module.NeighborSampler is pyg.sampler.NeighborSampler
    assert module.NeighborSampler.__module__ == "pygsampler.pyg"


def test_names_imported_before_are_told(caplog: pytest.LogCaptureFixture) -> None:
    from torch_geometric.loader import NeighborLoader

    module = sys.modules[__name__]
    module.Kept = NeighborLoader  # type: ignore[attr-defined]
    try:
        with caplog.at_level(logging.WARNING, "pygsampler"):
            found = pgs.install("pyg")
        assert f"{__name__}.Kept" in found.imported_before
        assert f"{__name__}.Kept" in repr(found)
        (record,) = caplog.records
        assert f"{__name__}.Kept" in record.message
        assert "call install() before these imports" in record.message
    finally:
        del module.Kept  # type: ignore[attr-defined]


def test_what_was_assigned_since_is_left() -> None:
    pgs.install("pyg")
    own = pyg.loader.NeighborLoader

    class Mine(own):  # type: ignore[misc,valid-type]
        pass

    before = installation._replaced["pyg"]
    original = next(each.before for each in before if each.after is own)
    pyg.loader.NeighborLoader = Mine
    try:
        pgs.uninstall()
        assert pyg.loader.NeighborLoader is Mine
    finally:
        pyg.loader.NeighborLoader = original


@pytest.mark.parametrize(
    ("key", "found"), [("pyg", "2.4.0"), ("pyg", "3.0.0a1"), ("dgl", "2.2.0"), ("dgl", "1.1.2")]
)
def test_versions_that_are_not_tested_are_refused(
    monkeypatch: pytest.MonkeyPatch, key: str, found: str
) -> None:
    title = installation.FRAMEWORKS[key].title
    of_others = installation.version
    name = installation.FRAMEWORKS[key].distribution
    monkeypatch.setattr(
        installation, "version", lambda each: found if each == name else of_others(each)
    )
    before = names()
    with pytest.raises(ImportError, match=rf"expected {title} .*, got {found}; .* other framework"):
        pgs.install()
    with pytest.raises(ImportError, match=rf"expected {title} .*, got {found}; .* own names$"):
        pgs.install(key)
    after = names()
    assert all(after[each] is value for each, value in before.items())
    (other,) = set(installation.FRAMEWORKS) - {key}
    assert pgs.install(other).replaced


@pytest.mark.parametrize("found", ["2.5.3", "2.8.1+local", "2.6.dev20260101"])
def test_every_patch_of_a_tested_version_is_taken(
    monkeypatch: pytest.MonkeyPatch, found: str
) -> None:
    monkeypatch.setattr(installation, "version", lambda _: found)
    assert pgs.install("pyg").replaced


def test_frameworks_that_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dgl", None)
    with pytest.raises(ImportError, match="install: expected DGL, found none that imports"):
        pgs.install("dgl")
    found = pgs.install()
    assert list(found.skipped) == ["DGL"] and "DGL: expected DGL" in repr(found)
    pgs.uninstall()
    monkeypatch.setitem(sys.modules, "torch_geometric", None)
    with pytest.raises(ImportError, match=r"expected PyG, found none .*; expected DGL, found none"):
        pgs.install()


def test_other_frameworks_are_refused() -> None:
    with pytest.raises(ValueError, match="install: expected one of pyg, dgl, got 'jraph'"):
        pgs.install("jraph")
