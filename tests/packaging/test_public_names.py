"""``dir()`` of the modules that users import shows public names alone."""

from __future__ import annotations

import importlib
import pkgutil
import warnings

import pytest
from partners import partner

import pygsampler

# Tools with commands, whose modules are no library.
TOOLS = {"quickstart"}
PARTNERS = {
    "pygsampler.dgl": "dgl",
    "pygsampler.flight": "pyarrow",
    "pygsampler.pyg": "torch_geometric",
}
MODULES = [
    "pygsampler",
    *(
        f"pygsampler.{module.name}"
        for module in pkgutil.iter_modules(pygsampler.__path__)
        if not module.name.startswith("_") and module.name not in TOOLS
    ),
]


@pytest.mark.parametrize("name", MODULES)
def test_a_module_shows_its_public_names(name: str) -> None:
    if name in PARTNERS:
        partner(PARTNERS[name])
    with warnings.catch_warnings():
        # What the import of DGL and PyG warns of is not ours.
        warnings.simplefilter("ignore")
        module = importlib.import_module(name)
    # Those of the package that are modules are imported by their own tests.
    assert all(hasattr(module, each) for each in module.__all__ if f"{name}.{each}" not in MODULES)
    more = {"__version__"} if name == "pygsampler" else set()
    assert dir(module) == sorted({*module.__all__, *more})
    assert not any(each.startswith("_") for each in module.__all__)
