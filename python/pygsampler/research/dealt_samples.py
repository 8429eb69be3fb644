"""``sample_on_devices``: samples of one call, dealt to several devices and collected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pygsampler._arrays import devices
from pygsampler._arrays.ids import as_ids
from pygsampler._batch import layout as at
from pygsampler._engine import memory as memories
from pygsampler._engine.checks import describe
from pygsampler._sampling.engine_sampler import EngineSampler
from pygsampler._sampling.plan import Plan
from pygsampler._sampling.sampler import check_graph
from pygsampler.research.step_samples import StepSamples

if TYPE_CHECKING:
    from pygsampler._batch.engine_result import EngineResult
    from pygsampler._graph.graph import Graph

__all__ = ["sample_on_devices", "sample_shares"]


def __dir__() -> list[str]:
    return sorted(__all__)


E = TypeVar("E", bound="EngineResult[Any]")
# Arrays of results begin at multiples of so many bytes.
_ALIGNMENT = 64


def sample_on_devices(
    sampler: Any,
    graphs: Sequence[Graph],
    seeds: Any,
    *,
    epoch: int | None = None,
    batch: int | None = None,
) -> Any:
    """Samples on several devices at once, and collects the samples in the memory of the CPU.

    The roots are dealt in equal, contiguous shares, one to each graph in their order. The samples
    are those of ``sampler.sample(graph, seeds, epoch=epoch, batch=batch)``, byte for byte and in
    the order of the roots, whatever the number and the kinds of the devices.

    Parameters
    ----------
    sampler : KHop, LayerSample or RandomWalk
        A ``RandomWalk`` with ``num_roots`` is dealt by whole walks.
    graphs : sequence of Graph
        The same graph on each device: ``[graph.to(f"cuda:{i}") for i in range(4)]``. A device
        may occur more than once, and so may the CPU.
    seeds : int32 or int64, shape [N], or a sequence of int
        The roots, on the CPU.
    epoch, batch : int, optional
        As for ``Sampler.sample``.

    Returns
    -------
    StepSamples or Walks
        On the CPU. Devices copy their share to the host when all of them have sampled.

    Raises
    ------
    TypeError
        For another sampler, and for what is not a sequence of graphs.
    ValueError
        For no graph, for graphs that differ in their number of nodes or edges, or their id dtype,
        and for seeds that are no multiple of ``num_roots``.
    IndexError
        For a seed that is not a node.

    Notes
    -----
    Source: NextDoor (Jangda et al., 2021), section 6.4. NumPy is needed.
    """
    shares = sample_shares(sampler, graphs, seeds, epoch=epoch, batch=batch)
    return _collected([share.cpu().numpy() for share in shares])


def sample_shares(
    sampler: Any,
    graphs: Sequence[Graph],
    seeds: Any,
    *,
    epoch: int | None = None,
    batch: int | None = None,
) -> list[Any]:
    """Returns the share of each graph of ``sample_on_devices``, on the graph's device."""
    import numpy as np

    kind = getattr(sampler, "result_kind", None)
    # A program of walks is no ``EngineSampler``: lanes of its own cannot be dealt.
    if not isinstance(sampler, EngineSampler) or kind not in ("walks", "steps"):
        raise TypeError(
            f"sampler: expected a KHop, a LayerSample or a RandomWalk, got {describe(sampler)}"
        )
    plan = sampler._plan
    _check_graphs(graphs)
    ids = as_ids(seeds, "seeds")
    roots = np.array(memories.integer_view(ids.address, ids.length, ids.bits) if ids.length else [])
    roots = roots.astype(np.int64)
    wrong = (roots < 0) | (roots >= graphs[0].num_nodes)
    if wrong.any():
        place = int(wrong.argmax())
        raise IndexError(
            f"seeds[{place}]: expected an id in [0, {graphs[0].num_nodes}), got {roots[place]}"
        )
    numbers = sampler._numbers
    epoch, batch = numbers.chosen_epoch(epoch), numbers.chosen_batch(batch)
    each, samples_each, first_name = 1, 1, "first_sample"
    if plan["family"] == "walk":
        each, samples_each = plan["roots"] or 1, plan["walks_per_seed"] or 1
        first_name = "first_walk"
    if len(roots) % each:
        raise ValueError(
            f"seeds: expected a multiple of {each}, the roots of a walk, got {len(roots)}"
        )
    groups = len(roots) // each
    bounds = [groups * i // len(graphs) for i in range(len(graphs) + 1)]
    jobs: list[Any] = []
    try:
        for i, graph in enumerate(graphs):
            share = _from_sample(sampler, first_name, bounds[i] * samples_each)
            some = roots[bounds[i] * each : bounds[i + 1] * each]
            jobs.append(
                share.launch(graph, some, epoch=epoch, batch=batch, asynchronous=len(graphs) > 1)
            )
        results = [job.result() for job in jobs]
    finally:
        # After an error, those that are still on their way.
        for job in jobs:
            job.cancel()
    return results


def _check_graphs(graphs: Any) -> None:
    if not isinstance(graphs, Sequence) or isinstance(graphs, (str, bytes)):
        raise TypeError(f"graphs: expected a sequence of Graph, got {describe(graphs)}")
    if not graphs:
        raise ValueError("graphs: expected one for each device, got none")
    for i, graph in enumerate(graphs):
        check_graph(graph)
        for name in ("num_nodes", "num_edges", "dtype"):
            mine, first = getattr(graph, name), getattr(graphs[0], name)
            if mine != first:
                raise ValueError(
                    f"graphs[{i}]: expected the graph of graphs[0] on another device, whose {name} "
                    f"is {first}, got {mine}"
                )


def _from_sample(sampler: Any, name: str, first: int) -> Any:
    """The sampler whose first sample has the numbers of sample ``first`` of a call."""
    other = sampler.with_seed(sampler.seed)
    other._plan = Plan(**{**sampler.plan, name: first})
    return other


def _collected(shares: list[E]) -> E:
    """The results of shares as one, in a buffer that is laid out as the engine's memories are."""
    import numpy as np

    first = shares[0]
    words = np.array([share._words for share in shares], np.int64)
    header = words[0].copy()
    joined = {name: _flat(shares, name) for name in first._descriptors}
    place = _aligned(8 * len(header))
    for name, values in joined.items():
        descriptor = first._descriptors[name]
        header[descriptor.offset] = place if values is not None else 0
        header[descriptor.length] = words[:, descriptor.length].sum()
        place = _aligned(place + (0 if values is None else values.nbytes))
    counts = [at.STEP_NUM_SAMPLES] if isinstance(first, StepSamples) else [at.WALK_NUM_WALKS]
    header[counts] = words[:, counts].sum(axis=0)
    header[at.SIZE] = place
    # Aligned by hand, since NumPy's own memory is aligned to 16 bytes.
    raw = np.zeros(place + _ALIGNMENT, np.uint8)
    buffer = raw[-raw.ctypes.data % _ALIGNMENT :][:place]
    buffer[: header.nbytes] = header.view(np.uint8)
    for name, values in joined.items():
        if values is not None:
            start = header[first._descriptors[name].offset]
            buffer[start : start + values.nbytes] = values.view(np.uint8)
    attributes = {name: getattr(first, name) for name in ("epoch", "batch", "seed")}
    address = buffer.ctypes.data
    return type(first)._of_memory(buffer.data, address, address, devices.CPU, attributes)


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _flat(shares: Sequence[Any], name: str) -> Any:
    """An array of all shares, in the order of its elements in memory; None if they have none."""
    import numpy as np

    arrays = [share._array(name) for share in shares]
    if arrays[0] is None:
        return None
    if not isinstance(shares[0], StepSamples):
        # Walks, step by step, or one number for each.
        return np.ascontiguousarray(np.concatenate(arrays, axis=-1)).reshape(-1)
    tables = list(zip(*(getattr(share, _TABLES[name]) for share in shares), strict=True))
    seeds = [share.seeds for share in shares] if name == "nodes" else []
    return np.concatenate([*seeds, *(step.reshape(-1) for steps in tables for step in steps)])


_TABLES = {"nodes": "steps", "edge_ids": "edge_ids"}
