"""The sampler and the graph of a loader, as its caller gave them."""

from __future__ import annotations

from typing import Any

import torch

from pygsampler._arrays import devices
from pygsampler._engine.checks import describe
from pygsampler._loader.options import replacement
from pygsampler._loader.summary import size_text
from pygsampler._sampling.sampler import Sampler
from pygsampler.errors import CudaError
from pygsampler.programs import ProgramFunction
from pygsampler.samplers.neighbor import PGSampler

__all__ = [
    *("check_not_function", "choose_device", "fits_device", "graph_on_device", "resolve_sampler"),
]

# The part of the free memory of a GPU that a graph may take, for batches, models and features to
# have the rest.
GRAPH_SHARE = 0.5


def check_not_function(sampler: Any) -> None:
    """Raises TypeError for a program's function in the place of what it makes."""
    if isinstance(sampler, ProgramFunction):
        raise TypeError(f"sampler: expected a sampler, {sampler._remedy()}, got {sampler!r}")


def resolve_sampler(sampler: Any, seed: int | None) -> Sampler[Any]:
    """Returns the sampler of a loader, from a sampler or from fanouts.

    TypeError for a sampler of torch's, which chooses seeds, with the arguments that do so here.
    """
    if isinstance(sampler, Sampler):
        return sampler
    check_not_function(sampler)
    if isinstance(sampler, torch.utils.data.Sampler):
        raise TypeError(
            f"sampler: expected a pygsampler.Sampler or fanouts, got {describe(sampler)}"
            f"{replacement('batch_sampler')}"
        )
    if isinstance(sampler, torch.Tensor) or type(sampler).__name__ == "PGSampler":
        kind = type(sampler)
        raise TypeError(
            "sampler: expected a pygsampler.PGSampler or a list of int, got a "
            f"{kind.__module__}.{kind.__qualname__}; the arguments are graph, seeds, fanouts"
        )
    return PGSampler(sampler, seed=seed)


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


def choose_device(graph: Any) -> tuple[str, str]:
    """Returns the device that ``"auto"`` is for ``graph``, and the reason.

    A graph on a GPU, or pinned for one, stays there. A graph on the CPU goes to torch's current GPU
    if there is one with room for it.
    """
    if devices.parse(graph.device) >= 0:
        return graph.device, "the graph is there"
    if graph._service is not None:
        return "cpu", "the graph is partitioned"
    if not torch.cuda.is_available():
        return "cpu", "torch finds no GPU"
    index = devices.parse("cuda")
    try:
        _check(index)
        free = devices.free_memory(index)
    except (CudaError, RuntimeError) as error:
        return "cpu", f"the GPU cannot be used: {error}"
    size = _graph_bytes(graph)
    fits = fits_device(size, free)
    reason = (
        f"the graph has {size_text(size)}, {'at most' if fits else 'more than'} {GRAPH_SHARE:.0%} "
        f"of the {size_text(free)} that are free on {devices.name(index)!r}"
    )
    return (devices.name(index) if fits else "cpu"), reason


def fits_device(size: int, free: int) -> bool:
    """Returns True if a graph of ``size`` bytes goes to a GPU with ``free`` bytes."""
    return size <= GRAPH_SHARE * free


def _graph_bytes(graph: Any) -> int:
    """Returns how many bytes a GPU needs for the edges of a graph, and values of them."""
    total = 0
    for relation in graph._relations().values():
        arrays = (relation.indptr, relation.indices, relation.edge_ids, *relation.edata.values())
        total += sum(array.nbytes for array in arrays if array is not None)
    return total


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
