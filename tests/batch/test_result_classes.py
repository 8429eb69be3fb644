"""A result is one of nine classes, whatever the graph, the device and the array library."""

from __future__ import annotations

import contextlib
import importlib
import pkgutil

import pytest

import pygsampler
from pygsampler._batch.block import Block
from pygsampler._batch.engine_result import EngineResult
from pygsampler._batch.minibatch import MiniBatch
from tests.support.research import HAS_RESEARCH

RESULTS = {
    *("MiniBatch", "Subgraph", "StaticMiniBatch", "LinkBatch"),
    *("Block", "StaticBlock", "Walks", "Visits", "Contexts"),
    *(["StepSamples"] if HAS_RESEARCH else []),
}


def subclasses(kind: type) -> set[type]:
    return {kind}.union(*(subclasses(each) for each in kind.__subclasses__()))


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_no_other_class_is_a_result() -> None:
    pytest.importorskip("torch")
    for module in pkgutil.walk_packages(pygsampler.__path__, "pygsampler."):
        # Commands print results, and have none; a framework that is not installed has none either.
        if module.name.split(".")[1] not in ("_cli", "__main__", "quickstart"):
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)
    found = {
        each.__name__
        for kind in (MiniBatch, Block, EngineResult)
        for each in subclasses(kind)
        if each.__module__.startswith("pygsampler") and not each.__name__.startswith("_")
    }
    modules = [pygsampler, pygsampler.torch, pygsampler.walks]
    if HAS_RESEARCH:
        modules.append(pygsampler.research)
    found |= {
        name
        for module in modules
        for name in module.__all__
        if isinstance(value := vars(module).get(name), type)
        and any(hasattr(value, method) for method in ("torch", "trimmed", "to_pyg"))
    }
    assert found - {"EngineResult", "Array", "Graph"} == RESULTS
