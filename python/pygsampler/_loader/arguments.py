"""The sampler and the graph of a loader, as its caller gave them."""

from __future__ import annotations

from typing import Any

import torch

from pygsampler._arrays import devices
from pygsampler._engine.checks import describe
from pygsampler._loader.options import replacement
from pygsampler._sampling.sampler import Sampler
from pygsampler.errors import CudaError
from pygsampler.programs import ProgramFunction
from pygsampler.samplers.neighbor import PGSampler

__all__ = ["check_not_function", "graph_on_device", "resolve_sampler"]


def check_not_function(given: Any) -> None:
    """TypeError for a program's function in the place of what it makes."""
    if isinstance(given, ProgramFunction):
        raise TypeError(f"sampler: expected a sampler, {given._remedy()}, got {given!r}")


def resolve_sampler(given: Any, seed: int | None) -> Sampler[Any]:
    """Returns the sampler of a loader, from a sampler or from fanouts.

    TypeError for a sampler of torch's, which chooses seeds, with the arguments that do so here.
    """
    if isinstance(given, Sampler):
        return given
    check_not_function(given)
    if isinstance(given, torch.utils.data.Sampler):
        raise TypeError(
            f"sampler: expected a pygsampler.Sampler or fanouts, got {describe(given)}"
            f"{replacement('batch_sampler')}"
        )
    if isinstance(given, torch.Tensor) or type(given).__name__ == "PGSampler":
        kind = type(given)
        raise TypeError(
            "sampler: expected a pygsampler.PGSampler or a list of int, got a "
            f"{kind.__module__}.{kind.__qualname__}; the arguments are graph, seeds, fanouts"
        )
    return PGSampler(given, seed=seed)


def graph_on_device(graph: Any, device: Any) -> Any:
    """``graph`` on ``device``, which torch can use too: itself where it is there already.

    A pinned graph is on the device that it was pinned for.
    """
    index = devices.parse(graph.device if device is None else device)
    if index >= 0:
        _check(index)
    if device is None or index == devices.parse(graph.device):
        return graph
    return graph.to(device)


def _check(index: int) -> None:
    """Raises CudaError unless the engine, which samples, and torch can use the device."""
    devices.require(index)
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if index >= count:
        why = "is built without CUDA" if torch.version.cuda is None else f"finds {count} of them"
        raise CudaError(
            f"device: expected a CUDA device that torch can use, got {devices.name(index)!r}; "
            f"torch {torch.__version__} {why}"
        )
