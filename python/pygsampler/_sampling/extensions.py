"""Registration of what ``pygsampler.research`` adds: modes, families of plans, programs as classes.

``research`` registers while the package is imported. Other packages read the registries, and import
nothing of it: without it the registries are empty, and all else samples as before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Mode(NamedTuple):
    """A mode of ``PGSampler`` that is a family of plans of the same name."""

    options: Mapping[str, Any]
    """The names of its ``mode_options``, with their default values."""
    has_cpu_code: bool = False
    """True if the CPU has code for the mode; False if it samples as in mode ``"auto"``."""
    equals_auto: bool = True
    """True if the batches are the batches of mode ``"auto"``."""
    takes_replace: bool = True
    """True if the mode samples with replacement too."""


class Family(NamedTuple):
    """A family of plans whose samplers have classes of their own, as a server needs it."""

    samplers: tuple[Any, ...]
    """The classes of its samplers; a sampler that is made from a plan is of the first one."""
    result_kind: str
    """The ``result_kind`` of the samplers."""
    result: Any
    """The class of the results: an ``EngineResult`` that has a ``seed``."""
    num_edges: Callable[[Mapping[str, Any], int], int]
    """Returns the number of edges that a plan draws from a number of seeds."""


MODES: dict[str, Mode] = {}
"""The registered modes, by name."""
FAMILIES: dict[str, Family] = {}
"""The registered families, by name."""
_class_frontends: list[Callable[[type], Callable[..., Any]]] = []


def register_mode(name: str, mode: Mode) -> None:
    """Adds a mode of ``PGSampler``."""
    MODES[name] = mode


def register_family(name: str, family: Family) -> None:
    """Adds a family of plans."""
    FAMILIES[name] = family


def register_class_frontend(frontend: Callable[[type], Callable[..., Any]]) -> None:
    """Sets the function that turns a class into the function which ``program`` traces."""
    _class_frontends[:] = [frontend]


def function_of_class(form: type) -> Callable[..., Any]:
    """Returns the function of a class that is written as a program.

    Raises
    ------
    TypeError
        For a class that the registered front end refuses, and if there is no front end.
    """
    if not _class_frontends:
        raise TypeError(
            f"program {form.__name__}: expected a function, got a class; pygsampler.research, "
            "which reads classes, is missing"
        )
    return _class_frontends[0](form)
