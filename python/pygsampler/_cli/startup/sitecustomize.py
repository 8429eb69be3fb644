"""Installs our classes when a program that ``pygsampler run`` started imports PyG or DGL.

Python runs this file when it starts: ``run`` puts its folder in front of ``PYTHONPATH``. Processes
that the program starts, such as workers of ``spawn`` or of ``torchrun``, run it as well.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))


class InstallFinder(MetaPathFinder):
    """Finds the frameworks' packages as Python does, and installs our classes after their import.

    Parameters
    ----------
    keys : dict of str to str
        For each package the framework's name for `pygsampler.install`.
    """

    def __init__(self, keys: dict[str, str]) -> None:
        self._keys = keys

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Returns the module's own specification, whose loader then installs; None for others."""
        key = self._keys.pop(name, None)
        if key is None:
            return None
        try:
            # The name is not among the keys meanwhile: this search asks the other finders alone.
            spec = importlib.util.find_spec(name)
        finally:
            self._keys[name] = key
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_install(module: ModuleType) -> None:
                execute(module)
                _install(key)

            spec.loader.exec_module = execute_and_install  # type: ignore[method-assign]
        return spec


def _install(key: str) -> None:
    if importlib.util.find_spec("pygsampler") is None:
        # A checkout that only the starting process had in its path.
        sys.path.append(os.path.abspath(os.path.join(_HERE, *[os.pardir] * 3)))
    import pygsampler

    pygsampler.install(key)


def _run_the_next() -> None:
    """Runs the ``sitecustomize`` that Python would have run without ours."""
    sys.path[:] = [each for each in sys.path if os.path.abspath(each) != _HERE]
    spec = PathFinder.find_spec("sitecustomize")
    if spec is not None and spec.loader is not None:
        module = sys.modules["sitecustomize"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


_run_the_next()
if "PYGSAMPLER_RUN" in os.environ:
    pairs = os.environ["PYGSAMPLER_RUN"].split(",")
    sys.meta_path.insert(0, InstallFinder(dict(each.split("=") for each in pairs)))
