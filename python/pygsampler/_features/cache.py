"""``FeatureCache``: the rows of features that a device keeps, chosen by a policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

from pygsampler._engine.checks import describe, integer
from pygsampler._engine.limits import MAX_EPOCH
from pygsampler._features.cache_policy import placements, replacements, top_rows
from pygsampler._features.cache_table import CacheTable
from pygsampler._features.read_counts import neighbor_counts

if TYPE_CHECKING:
    from torch import Tensor

    from pygsampler._graph.graph import Graph

DEGREE, PRESAMPLED, EXACT, LRU = POLICIES = ("degree", "presampled", "exact", "lru")
Policy = str | Callable[["Graph"], Any]

_MOST_PLACES = (1 << 31) - 1
# Epochs that are counted by default: see benchmarks/cache.py.
_EPOCHS = {PRESAMPLED: 1, EXACT: 1}


class CacheOptions(NamedTuple):
    """Options of a cache. ``rows`` None stands for ``bytes`` of them and the table."""

    rows: int | None
    bytes: int | None
    policy: Policy
    epochs: int

    @classmethod
    def checked(cls, num_rows: Any, bytes: Any, policy: Any, epochs: Any) -> CacheOptions:
        if (num_rows is None) == (bytes is None):
            raise ValueError(f"rows, bytes: expected one of them, got {num_rows!r} and {bytes!r}")
        if num_rows is not None:
            num_rows = integer(num_rows, "rows", 1)
        else:
            bytes = integer(bytes, "bytes", 1)
        if isinstance(policy, str):
            if policy not in POLICIES:
                raise ValueError(
                    f"policy: expected one of {POLICIES} or a function, got {policy!r}"
                )
        elif not callable(policy):
            raise TypeError(
                f"policy: expected one of {POLICIES} or a function, got {describe(policy)}"
            )
        default = _EPOCHS.get(policy, 0) if isinstance(policy, str) else 0
        if epochs is not None and not default:
            raise ValueError(
                f"epochs: expected None, since {_named(policy)!r} counts none, got {epochs!r}"
            )
        epochs = default if epochs is None else integer(epochs, "epochs", 1, MAX_EPOCH)
        return cls(num_rows, bytes, policy, epochs)

    def places(self, num_rows: int, row_bytes: int) -> int:
        """Returns how many of so many rows, of ``row_bytes`` bytes each, the cache is to have."""
        if self.rows is not None:
            return min(self.rows, num_rows, _MOST_PLACES)
        assert self.bytes is not None
        beside, each = (
            CacheTable.index_bytes(num_rows),
            CacheTable.bytes_of(row_bytes, self.policy == LRU),
        )
        if self.bytes < beside + each:
            raise ValueError(
                f"bytes: expected at least {beside + each}, of which the numbers of {num_rows} "
                f"rows take {beside}, got {self.bytes}"
            )
        return min((self.bytes - beside) // each, num_rows, _MOST_PLACES)


class FeatureCache:
    """Rows of a table that a device has a copy of.

    By ``"degree"`` and by a function they follow from a graph; by ``"presampled"`` and ``"exact"``
    from how often a loader reads them; by ``"lru"`` from what was read. Until it is known which,
    there are none.
    """

    __slots__ = ("_known", "_owner", "_source", "_window", "plan", "table")

    def __init__(
        self, plan: CacheOptions, device: int, num_rows: int, row_bytes: int, source: int
    ) -> None:
        """``source`` is where the device reads the table."""
        self.plan = plan
        self._source = source
        self.table = CacheTable(
            device, num_rows, row_bytes, plan.places(num_rows, row_bytes), plan.policy == LRU
        )
        # True if the cache has the rows that the policy wants, for good.
        self._known = plan.policy == LRU
        # The loader whose epochs are counted, and the seed and first epoch of the count.
        self._owner: ref[Any] | None = None
        self._window: tuple[int, int] | None = None

    @property
    def policy(self) -> str:
        """The rule that the rows follow from, in a word."""
        return _named(self.plan.policy)

    @property
    def wants_graph(self) -> bool:
        """True if the cache waits for a graph."""
        return not self._known and self.plan.policy not in (PRESAMPLED, EXACT)

    def fill(self, graph: Graph) -> None:
        """Takes the rows that follow from a graph."""
        if not self.table.places:
            return
        rows, policy = self.table.rows, self.plan.policy
        scores = neighbor_counts(graph) if isinstance(policy, str) else _scores(policy(graph), rows)
        if len(scores) > rows:
            raise ValueError(
                f"graph: expected one of at most {rows} nodes, which have rows, "
                f"got one of {len(scores)}"
            )
        self.take(top_rows(scores, self.table.places))

    def take(self, row_ids: Tensor) -> None:
        """Has these rows from now on, as many as there is room for."""
        import torch

        chosen = torch.zeros(self.table.rows, dtype=torch.bool, device=row_ids.device)
        chosen[row_ids[: self.table.places]] = True
        self.table.put(*placements(chosen, self.table.held().to(row_ids.device)), self._source)
        self._known = self.plan.policy != EXACT

    def due(self, owner: Any, seed: int, epoch: int) -> Iterable[int]:
        """The epochs of a loader whose reads have to be counted before it starts one of them.

        The first loader that reads a cache decides: a second loader, for validation for example,
        would evict its rows.
        """
        if self._known or not self.table.places or self.wants_graph:
            return ()
        if self.plan.policy == PRESAMPLED:
            # The last possible epochs, so that none of them is trained on.
            return range(MAX_EPOCH + 1 - self.plan.epochs, MAX_EPOCH + 1)
        held = None if self._owner is None else self._owner()
        if held is not None and held is not owner:
            return ()
        if self._window is not None and held is owner:
            known, first = self._window
            if seed == known and first <= epoch < first + self.plan.epochs:
                return ()
        return range(epoch, min(epoch + self.plan.epochs, MAX_EPOCH + 1))

    def count(self, owner: Any, seed: int, epoch: int, counts: Tensor) -> None:
        """Takes the rows that follow from what was counted: of ``due`` epochs, for each row."""
        import torch

        try:
            self._choose(owner, seed, epoch, counts)
        except torch.cuda.OutOfMemoryError:
            self._choose(owner, seed, epoch, counts.cpu())

    def _choose(self, owner: Any, seed: int, epoch: int, counts: Tensor) -> None:
        if self.plan.policy == PRESAMPLED:
            self.take(top_rows(counts, self.table.places))
            return
        # Until it is done nothing is known: Ctrl-C may come in between.
        self._window = None
        held = self.table.held().to(counts.device)
        self.table.put(*replacements(counts, held), self._source)
        self._owner, self._window = ref(owner), (seed, epoch)

    def cached_rows(self) -> Tensor | None:
        """The rows that it has, on the CPU; None where it has not been filled."""
        if not self._known and self._window is None:
            return None
        held = self.table.held().cpu()
        return held[held >= 0]


def _named(policy: Policy) -> str:
    return policy if isinstance(policy, str) else getattr(policy, "__name__", "function")


def _scores(values: Any, num_rows: int) -> Tensor:
    """Returns a function's scores: a number for each row."""
    import torch

    try:
        scores = torch.as_tensor(values).cpu()
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(
            f"policy: expected a function that gives an array, got {describe(values)}: {error}"
        ) from None
    if scores.shape != (num_rows,) or scores.is_complex():
        raise ValueError(
            f"policy: expected a function that gives a number for each of {num_rows} rows, "
            f"got {scores.dtype} of shape {tuple(scores.shape)}"
        )
    if scores.is_floating_point() and bool(scores.isnan().any()):
        raise ValueError("policy: expected a function that gives numbers, got a NaN")
    return scores.to(torch.int8) if scores.dtype == torch.bool else scores
