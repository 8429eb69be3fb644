"""Public classes and functions say the module under which users find them."""

from __future__ import annotations

import importlib
import inspect
import pickle

import pytest

MODULES = [
    "",
    ".torch",
    ".evaluate",
    ".samplers",
    ".walks",
    ".programs",
    pytest.param(".research", marks=pytest.mark.research),
    ".distributed",
    ".datasets",
]


@pytest.mark.parametrize("suffix", MODULES)
def test_a_public_name_has_a_public_module(suffix: str) -> None:
    if suffix in (".torch", ".evaluate", ".distributed"):
        pytest.importorskip("torch", reason="needs torch")
    module = importlib.import_module(f"pygsampler{suffix}")
    # Submodules of the root are loaded when they are named: DGL and PyG may be missing.
    names = [name for name in module.__all__ if suffix or name in vars(module)]
    for name in names:
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            home = importlib.import_module(value.__module__)
            assert "._" not in home.__name__
            assert name in home.__all__
            assert getattr(home, name) is value


def test_repr_and_pickles_name_the_public_class() -> None:
    import pygsampler as pgs

    assert repr(pgs.Graph) == "<class 'pygsampler.Graph'>"
    assert b"pygsampler\n" in pickle.dumps(pgs.Graph, protocol=0)
    assert pickle.loads(pickle.dumps(pgs.Graph)) is pgs.Graph
