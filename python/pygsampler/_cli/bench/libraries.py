"""The libraries that can be compared with: what they need, and whether they are here."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

# The measures of a comparison: a batch sampled; a batch of a loader, with features; a step.
MEASURES = ("sampling", "loader", "step")


@dataclass(frozen=True)
class Library:
    """A library of `--against`: the modules that it needs, with their names, and how to get them.

    It takes part in `measures`.
    """

    title: str
    modules: Mapping[str, str]
    install: str
    measures: tuple[str, ...] = ("sampling",)
    on_gpu_alone: bool = False


@dataclass(frozen=True)
class Absence:
    """A library that takes no part in `measures`, the reason, and the remedy if there is one."""

    name: str
    library: str
    measures: tuple[str, ...]
    reason: str
    remedy: str | None

    def __str__(self) -> str:
        text = f"{self.library} ({', '.join(self.measures)}): {self.reason}"
        return text if self.remedy is None else f"{text}; {self.remedy}"


LIBRARIES = {
    "dgl": Library("DGL", {"torch": "PyTorch", "dgl": "DGL"}, "pip install torch dgl", MEASURES),
    "pyg": Library(
        "PyG",
        {"torch": "PyTorch", "torch_geometric": "PyG"},
        "pip install torch torch_geometric",
        MEASURES,
    ),
    "torch-cluster": Library(
        "torch-cluster",
        {"torch": "PyTorch", "torch_cluster": "torch-cluster"},
        "pip install torch, then pip install torch-cluster --no-build-isolation",
    ),
    "cugraph": Library(
        "cuGraph",
        {"torch": "PyTorch", "cupy": "CuPy", "pylibcugraph": "cuGraph"},
        "pip install torch cupy-cuda12x pylibcugraph-cu12",
        on_gpu_alone=True,
    ),
    "kumo": Library(
        "Kumo Engine",
        {"torch": "PyTorch", "diskgraph": "Kumo Engine"},
        "pip install kumo-engine",
    ),
}
# The layers of PyG do without.
_PYG_SAMPLERS = (
    "pip install torch torch_geometric, and pyg-lib from https://data.pyg.org/whl, "
    "or pip install torch-sparse --no-build-isolation"
)


def absences(name: str, measures: Sequence[str], device: str) -> list[Absence]:
    """Why a library takes no part in some of these measures; nothing if it does in all."""
    library = LIBRARIES[name]
    result = []

    def add(measures: Sequence[str], reason: str, remedy: str | None) -> None:
        result.append(Absence(name, library.title, tuple(measures), reason, remedy))

    others = [measure for measure in measures if measure not in library.measures]
    measures = [measure for measure in measures if measure in library.measures]
    if measures and library.on_gpu_alone and device == "cpu":
        add(measures, "it samples on a GPU alone", "--device cuda")
        return result
    for module, title in library.modules.items():
        if measures and (reason := import_failure(module, title)):
            add(measures, reason, library.install)
            return result
    if others:
        add(others, f"it takes part in {' and '.join(library.measures)} alone", None)
    measures = [measure for measure in measures if measure != "step"]
    if name == "pyg" and measures and pyg_sampler() is None:
        reason = import_failure("pyg_lib", "pyg-lib") or "pyg-lib does not fit PyG and PyTorch"
        add(measures, reason, _PYG_SAMPLERS)
    return result


def import_failure(module: str, title: str) -> str | None:
    """Why a module cannot be imported, in a line; None if it can."""
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            # The messages of libraries at their import are no part of the result.
            warnings.simplefilter("ignore")
            import_module(module)
    except Exception as error:
        # A library that is broken raises whatever it likes.
        if isinstance(error, ModuleNotFoundError) and error.name == module:
            return f"{title} is not installed"
        return f"{title} fails at its import with {first_line(error)}"
    return None


def first_line(error: BaseException) -> str:
    """The class of an error and the first line of its text."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def pyg_sampler() -> str | None:
    """The library that samples for PyG, by PyG's own choice; None if it has none."""
    with warnings.catch_warnings():
        # PyG warns about torch at its import.
        warnings.simplefilter("ignore")
        import torch_geometric.typing

    if torch_geometric.typing.WITH_PYG_LIB:
        return "pyg-lib"
    return "torch-sparse" if torch_geometric.typing.WITH_TORCH_SPARSE else None
