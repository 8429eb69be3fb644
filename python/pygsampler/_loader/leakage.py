"""``LeakageGuard``: finds what of a batch is later than the seed that it is for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch

from pygsampler._features.features import Features
from pygsampler._graph.graph import is_heterogeneous
from pygsampler._loader.seed_source import EpochDraws

if TYPE_CHECKING:
    from pygsampler._loader.epoch_state import EpochRun
    from pygsampler._loader.seed_source import SeedSource
    from pygsampler.samplers.temporal import Temporal

__all__ = ["GuardedSeeds", "LeakageGuard"]


class LeakageGuard:
    """Compares the times of edges, nodes and labels in a batch with the times of their seeds.

    It knows nothing of how a batch was sampled: the times are those of the graph's arrays, by the
    ids in the batch, and each tree's bound is that of the seed with its number. ``label_times`` has
    by node type from when on the label of each node is known.
    """

    def __init__(self, graph: Any, rule: Temporal, label_times: Mapping[str, torch.Tensor]) -> None:
        self._about = graph, rule, label_times
        self._labels = label_times
        self._name, self._inclusive = rule.attr, rule.inclusive
        self._is_hetero = is_heterogeneous(graph)
        self._kinds = graph.node_types if self._is_hetero else [""]
        edges = graph.edata if self._is_hetero else {"": graph.edata}
        nodes = graph.ndata if self._is_hetero else {"": graph.ndata}
        self._edges = {kind: of[rule.attr] for kind, of in edges.items() if rule.attr in of}
        # An edge array is taken where both have the name.
        timed = {} if self._edges else nodes
        self._nodes = {kind: of[rule.attr] for kind, of in timed.items() if rule.attr in of}
        # By kind of edges or nodes, and by device, the times as rows, which the engine reads.
        self._rows: dict[tuple[Any, str], Features] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        # The arrays are the graph's, which a pickle has once.
        return LeakageGuard, self._about

    def check(self, batch: Any, seed_time: Any) -> Any:
        """Returns the batch, in torch tensors; ValueError for the first that is later."""
        for kind, known in self._labels.items():
            self._compare_labels(kind, known, batch, seed_time)
        bounds, trees = self._bounds(seed_time), self._as_mapping(batch.subgraph_ids)
        inputs = self._as_mapping(batch.input_nodes)
        device = next(iter(inputs.values())).device
        bounds = bounds.to(device)
        for kind, ids in inputs.items():
            if kind in self._nodes and len(ids):
                times = self._times(kind, self._nodes[kind], ids)
                self._compare(
                    times, bounds[trees[kind].long()], ids, f"node {{}} of {kind!r}", batch
                )
        for blocks in batch.blocks:
            for kind, block in (blocks if self._is_hetero else {"": blocks}).items():
                if kind not in self._edges or not block.num_edges:
                    continue
                ids = block.edge_ids
                times = self._times(kind, self._edges[kind], ids)
                of_rows = trees[kind[2] if self._is_hetero else ""][: block.num_dst_nodes]
                limits = bounds[of_rows.long()].repeat_interleave(
                    block.in_degrees().long(), output_size=block.num_edges
                )
                self._compare(times, limits, ids, f"edge {{}} of {kind!r}", batch)
        return batch

    def _compare_labels(self, kind: str, times: torch.Tensor, batch: Any, seed_time: Any) -> None:
        outputs = self._as_mapping(batch.output_nodes)
        limits = self._as_mapping(seed_time).get(kind)
        if kind not in outputs or limits is None or not len(limits):
            return
        ids = outputs[kind][self._as_mapping(batch.output_index)[kind].long()]
        times, limits = times[ids.cpu().long()], torch.as_tensor(limits).cpu()
        early = times <= limits
        if not bool(early.any()):
            return
        first = int(early.to(torch.uint8).argmax())
        raise ValueError(
            f"batch {batch.batch} of epoch {batch.epoch}: expected labels that are known after the "
            f"times of their seeds, got {times[first].item()} of the label of node "
            f"{int(ids[first])} of {kind!r}, whose seed has {limits[first].item()}; "
            f"{int(early.sum())} are known by then"
        )

    def _as_mapping(self, values: Any) -> Mapping[str, Any]:
        found: Mapping[str, Any] = values if self._is_hetero else {"": values}
        return found

    def _bounds(self, seed_time: Any) -> torch.Tensor:
        """The time of each tree's seed: of seeds type after type, as trees are numbered."""
        if not isinstance(seed_time, Mapping):
            return torch.as_tensor(seed_time)
        return torch.cat([seed_time[kind] for kind in self._kinds if kind in seed_time])

    def _times(self, kind: Any, array: Any, ids: torch.Tensor) -> torch.Tensor:
        key = kind, str(ids.device)
        rows = self._rows.get(key)
        if rows is None:
            rows = Features.from_tensor(array.torch().unsqueeze(1))
            rows = self._rows[key] = rows.to(ids.device) if ids.is_cuda else rows
        times: torch.Tensor = rows.read(ids)
        return times.squeeze(1)

    def _compare(
        self, times: torch.Tensor, limits: torch.Tensor, ids: torch.Tensor, what: str, batch: Any
    ) -> None:
        if times.is_floating_point() or limits.is_floating_point():
            times, limits = times.double(), limits.double()
        late = times > limits if self._inclusive else times >= limits
        if not bool(late.any()):
            return
        first = int(late.to(torch.uint8).argmax())
        than = "no later than" if self._inclusive else "before"
        raise ValueError(
            f"batch {batch.batch} of epoch {batch.epoch}: expected times {self._name!r} {than} "
            f"those of the seeds, got {times[first].item()} of {what.format(int(ids[first]))}, "
            f"whose seed has {limits[first].item()}; {int(late.sum())} are later"
        )


class GuardedSeeds:
    """The seeds of a loader whose batches are checked when they are handed over."""

    def __init__(self, source: SeedSource, guard: LeakageGuard) -> None:
        self._source, self._guard = source, guard

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def __reduce__(self) -> tuple[Any, ...]:
        # Before there is a source, nothing may be asked of it.
        return GuardedSeeds, (self._source, self._guard)

    def __len__(self) -> int:
        return len(self._source)

    def begin(self, run: EpochRun, index: int) -> EpochDraws:
        """Implements ``SeedSource.begin``."""
        draws, waiting = self._source.begin(run, index), deque[Any]()
        finish: Callable[[Any], Any] = draws.finish or (lambda batch: batch)

        def draw(step: int) -> tuple[Any, dict[str, Any]]:
            seeds, more = draws.draw(step)
            waiting.append(more["seed_time"])
            return seeds, more

        return EpochDraws(draw, lambda b: finish(self._guard.check(b, waiting.popleft())))
