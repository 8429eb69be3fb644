"""``Temporal``: which edges may be sampled when."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from pygsampler._arrays.datetimes import as_numpy_span, check_window, datetime_kind
from pygsampler._engine.checks import describe

__all__ = ["Temporal"]


def __dir__() -> list[str]:
    return sorted(__all__)


@dataclass(frozen=True, repr=False)
class Temporal:
    """Samples edges that are not later than a bound: the ``temporal`` of a ``PGSampler``.

    ``sample`` then takes ``seed_time``, the bound of each seed, whose neighborhood is disjoint from
    that of other seeds. The rows of the graph are sorted by time at the first batch.

    Parameters
    ----------
    attr : str
        The name of an edge array or a node array of the graph: int32, int64, float32 or float64
        (dates are taken as int64, of nanoseconds). With a node array the time of an edge is that of
        the node which it comes from.
    strategy : str
        ``"uniform"``: draws among the edges that the bound allows. ``"last"``: takes the latest of
        them, in ascending order; with ``replace`` it draws among these.
    window : float, timedelta or str, optional
        The longest time, from 0 on, that an edge may be earlier than the bound. A span of
        ``datetime``, NumPy, pandas or Arrow, or as text, such as "3d", "12h" or "30min", needs
        times that are dates. None: any time.
    inclusive : bool
        Allow edges at the bound itself. False: only earlier ones.
    carry : str
        ``"seed"``: the time of the seed bounds all hops. ``"edge"``: the edges of a node are
        bounded by the time of the edge that first reached it (with a node array: by its own time).

    Raises
    ------
    TypeError
        For an ``attr`` that is no name, an ``inclusive`` that is no bool, or a text that is no
        span. The other fields are checked by the sampler that takes them.

    Notes
    -----
    docs/guide/temporal.md has examples. PyG calls the first two ``time_attr`` and
    ``temporal_strategy``.
    """

    attr: str
    strategy: str = "uniform"
    window: Any = None
    inclusive: bool = True
    carry: str = "seed"

    def __post_init__(self) -> None:
        if not isinstance(self.attr, str):
            raise TypeError(
                f"attr: expected the name of an edge or node array, got {describe(self.attr)}"
            )
        if not isinstance(self.inclusive, bool):
            raise TypeError(f"inclusive: expected True or False, got {describe(self.inclusive)}")
        object.__setattr__(self, "window", as_numpy_span(self.window))

    def __repr__(self) -> str:
        given = [
            f", {field.name}={getattr(self, field.name)!r}"
            for field in fields(self)[1:]
            if getattr(self, field.name) != field.default
        ]
        return f"Temporal({self.attr!r}{''.join(given)})"


def check_window_of(graph: Any, rule: Temporal | None) -> None:
    """Raises TypeError for a window of timedelta64 where the graph's times are numbers.

    Nobody knows the times of a partitioned graph.
    """
    if rule is not None and datetime_kind(rule.window) and graph._service is None:
        check_window(rule.window, graph._source._kind_of_times(rule.attr), rule.attr)


def as_rule(temporal: str | Temporal | None, name: str = "temporal") -> Temporal | None:
    """Returns the rule of an option ``temporal``, which may be the name of an attribute alone.

    TypeError for anything else, which calls the option ``name``.
    """
    if temporal is None or isinstance(temporal, Temporal):
        return temporal
    if isinstance(temporal, str):
        return Temporal(temporal)
    raise TypeError(
        f"{name}: expected the name of an edge or node array, a Temporal or None, got "
        f"{describe(temporal)}"
    )
