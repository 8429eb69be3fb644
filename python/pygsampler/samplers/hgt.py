"""``HGTSampler``: subgraphs of heterogeneous graphs, with as many nodes of each type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pygsampler._engine.checks import describe
from pygsampler._sampling.hetero_plan_sampler import HeteroPlanSampler
from pygsampler._sampling.plan import ByRelation, Plan
from pygsampler._sampling.sampler import from_pickle

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["HGTSampler"]


def __dir__() -> list[str]:
    return sorted(__all__)


class HGTSampler(HeteroPlanSampler):
    """Samples a subgraph around seeds, by the budgets of the Heterogeneous Graph Transformer.

    Each in-edge of a chosen node adds 1/d to the budget of its source, where d is the number of
    in-edges of that edge type that the node has. Each iteration chooses nodes of every type among
    those that have a budget, one after another, with chances proportional to the square of the
    budget among the nodes that are left. So types are balanced, and nodes that many chosen nodes
    share come first: the subgraph is dense. A batch has the edges among all of its nodes.

    Parameters
    ----------
    num_samples : sequence of int, or mapping of node types to sequences of int
        The number of nodes that each iteration chooses: one sequence for every type, or one per
        type, for all types of the graph and with equal numbers of iterations. -1 takes all that
        have a budget, 0 takes none.
    max_neighbors : int, optional
        A node with more in-edges of an edge type keeps that many, drawn uniformly, once for the
        batch: budgets and edges are those of the graph of the drawn edges. None keeps all. The
        default is 50, the value of PyG and of the authors' program.
    seed : int, optional
        As for ``PGSampler``.
    map_bytes : int, optional
        As for ``PGSampler``.

    Raises
    ------
    TypeError, ValueError
        For an option of the wrong type or range; by ``sample`` also for types of nodes that are
        missing in ``num_samples``, or not in the graph.

    Notes
    -----
    ``sample`` takes a ``HeteroGraph`` and a mapping of node types to seeds, and returns a
    ``MiniBatch`` of one hop: ``batch.blocks[0]`` has for each edge type the edges from all of the
    source type's ``nodes`` to all of the destination type's. The seeds are the first of their type,
    then come the nodes that the iterations chose, each in the order in which they were chosen. One
    core samples a batch of a graph on the CPU. A batch of a graph on a GPU is one launch there, and
    stays there: the bytes are the same. ``exclude`` is a mapping of edge types to edge ids.

    Source: Z. Hu, Y. Dong, K. Wang, Y. Sun, "Heterogeneous Graph Transformer", WWW 2020, section
    3.3, algorithms 1 and 2. docs/developer/draws.md has the rules. A sample is a pure function
    of (graph, options, seed, epoch, batch, seeds), and the order of the types changes no choice.

    One sampler may be used from many threads at once.
    """

    __slots__ = ()

    def __init__(
        self,
        num_samples: Sequence[int] | Mapping[str, Sequence[int]],
        *,
        max_neighbors: int | None = 50,
        seed: int | None = None,
        map_bytes: int | None = None,
    ) -> None:
        plan = Plan(
            family="hgt",
            num_samples=_by_iteration(num_samples),
            max_neighbors=max_neighbors,
            map_bytes=map_bytes,
        )
        super().__init__(plan, seed)

    @property
    def num_samples(self) -> tuple[int, ...] | dict[str, tuple[int, ...]]:
        """The number of nodes that each iteration chooses, of each type alike or by type."""
        found: tuple[Any, ...] = self._plan["num_samples"]
        if not any(isinstance(each, Mapping) for each in found):
            return found
        return {kind: tuple(each[kind] for each in found) for kind in found[0]}

    @property
    def max_neighbors(self) -> int | None:
        """In-edges that a node keeps of an edge type; None: all."""
        value: int | None = self._plan["max_neighbors"]
        return value

    @property
    def map_bytes(self) -> int | None:
        """The argument ``map_bytes``: the bound in bytes of the map that numbers nodes."""
        value: int | None = self._plan["map_bytes"]
        return value

    def _rows_of_parts(self) -> Plan:
        # A row is one of a first hop, whichever iteration chose it.
        most = self.max_neighbors
        return Plan(family="typed", fanouts=[-1 if most is None else most])

    def with_seed(self, seed: int | None) -> HGTSampler:
        """Another sampler of this plan, with that seed, that begins with batch 0 of epoch 0."""
        return HGTSampler(**self._arguments(), seed=seed)

    def _arguments(self) -> dict[str, Any]:
        return {
            "num_samples": self.num_samples,
            "max_neighbors": self.max_neighbors,
            "map_bytes": self.map_bytes,
        }

    def __repr__(self) -> str:
        given = self.num_samples
        shown = (
            {kind: list(counts) for kind, counts in given.items()}
            if isinstance(given, dict)
            else list(given)
        )
        return f"HGTSampler({shown}, max_neighbors={self.max_neighbors}, seed={self.seed})"

    def __reduce__(self) -> tuple[Any, ...]:
        return from_pickle, (
            HGTSampler,
            self._arguments(),
            self.seed,
            self.epoch,
            self._numbers.next,
        )


def _by_iteration(num_samples: Any) -> Any:
    """Numbers by type as the engine has them: for each iteration those of all types."""
    if not isinstance(num_samples, Mapping):
        return num_samples
    counts: dict[str, list[Any]] = {}
    for kind, numbers in num_samples.items():
        if not isinstance(kind, str):
            raise TypeError(f"num_samples: expected types of nodes, got {describe(kind)}")
        if isinstance(numbers, (str, bytes, Mapping)) or not hasattr(numbers, "__len__"):
            raise TypeError(
                f"num_samples[{kind!r}]: expected a sequence of int, got {describe(numbers)}"
            )
        counts[kind] = list(numbers)
    lengths = {kind: len(numbers) for kind, numbers in counts.items()}
    if len(set(lengths.values())) != 1:
        raise ValueError(
            f"num_samples: expected a number for each iteration, as many of each type, got "
            f"{lengths or 'none'}"
        )
    return [
        ByRelation({kind: numbers[i] for kind, numbers in counts.items()})
        for i in range(next(iter(lengths.values())))
    ]
