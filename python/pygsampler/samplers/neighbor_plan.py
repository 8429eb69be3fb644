"""``neighbor_plan``: the plan of a ``PGSampler``'s options, of the family that they ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pygsampler._arrays.datetimes import as_nanoseconds, as_numpy_span, datetime_kind
from pygsampler._engine.checks import describe
from pygsampler._graph.schema import relation_name
from pygsampler._sampling.plan import ByRelation, Plan

# What a plan has for no window.
NO_WINDOW = 2.0**62

# The options that every family takes.
_COMMON = ("fanouts", "replace", "frontier", "prob", "mask", "edge_weights")

# The modes of the family of neighbours; the others are families of their own.
NEIGHBOR = ("auto", "persistent")
_MODES = (*NEIGHBOR, "fused", "bsp", "queue", "reservoir")
# The options of mode "reservoir", with what is usual.
RESERVOIR: dict[str, Any] = {
    "degree_threshold": None,
    "block_threshold": None,
    "memory": "adaptive",
    "schedule": True,
    "streams": None,
}


def neighbor_plan(options: Mapping[str, Any]) -> Plan:
    """The plan of all options by their names, ``fanouts`` among them, but for the seed."""
    typed = options["default"] is not None or _has_types(options["fanouts"])
    mode = options["mode"]
    if options["time"] is None:
        _check_without_time(options)
    else:
        if _family(mode)["family"] != "neighbor":
            raise ValueError(f"mode: expected one of {NEIGHBOR} with time, got {mode!r}")
        if not typed:
            return Plan(family="temporal", **_rule(options), **_of(options, *_COMMON))
    if typed:
        plan = hetero_plan(options)
        _family(mode)
        return plan
    return Plan(
        **_family(mode),
        **_reservoir(mode, options["reservoir"]),
        **_of(options, *_COMMON, "disjoint", "ordered", "map_limit"),
    )


def hetero_plan(options: Mapping[str, Any]) -> Plan:
    """That of the same options for a graph with types."""
    hops, in_time = (
        fanouts_by_name(options["fanouts"], options["default"]),
        options["time"] is not None,
    )
    if options["prob"] is not None and options["mask"] is not None:
        raise ValueError("prob, mask: expected at most one of them, got both")
    fields = _of(options, *_COMMON, "default", "map_limit")
    fields |= {"fanouts": hops, "disjoint": options["disjoint"] or in_time}
    return Plan(family="typed", **fields, **(_rule(options) if in_time else {}))


def fanouts_by_name(fanouts: Any, default: int | None) -> list[Any]:
    """Fanouts of hops whose numbers by edge type are by the types' names."""
    for i, hop in enumerate(fanouts):
        if isinstance(hop, Mapping) and not hop and default is None:
            raise ValueError(f"fanouts[{i}]: expected a number for each edge type, got none")
    return [
        _by_name(hop, f"fanouts[{i}]") if isinstance(hop, Mapping) else hop
        for i, hop in enumerate(fanouts)
    ]


def _by_name(hop: Mapping[Any, Any], where: str) -> ByRelation:
    """The numbers of a hop by the names of edge types, which the engine knows as well as short
    ones."""
    numbers = ByRelation()
    for kind, number in hop.items():
        parts = kind if isinstance(kind, tuple) else (kind,)
        if len(parts) not in (1, 3) or not all(isinstance(part, str) for part in parts):
            raise TypeError(
                f"{where}: expected (source type, relation, destination type) or the name of a "
                f"relation, got {kind!r}"
            )
        name = relation_name(kind)
        if name in numbers:
            raise ValueError(
                f"{where}: expected one number for each edge type, got two for {name!r}"
            )
        numbers[name] = number
    return numbers


def _of(options: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: options[name] for name in names}


def _has_types(fanouts: Any) -> bool:
    """Whether some hop takes other numbers of one edge type than of another."""
    return isinstance(fanouts, (list, tuple)) and any(isinstance(n, Mapping) for n in fanouts)


def _rule(options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that say which edges a bound leaves."""
    fields = _of(options, "time", "compare", "window", "carry", "strategy")
    window = as_numpy_span(fields["window"])
    if datetime_kind(window) == "M":
        raise TypeError(f"window: expected a number or timedelta64, got {window.dtype}")
    return {**fields, "window": as_nanoseconds(window, "window")}


def _check_without_time(options: Mapping[str, Any]) -> None:
    for name, usual in (
        ("compare", "le"),
        ("window", None),
        ("carry", "seed"),
        ("strategy", "uniform"),
    ):
        value = options[name]
        if value != usual:
            raise ValueError(f"{name}: expected {usual!r} without time=, got {describe(value)}")


def _family(mode: Any) -> dict[str, str]:
    """The fields of a plan that say how."""
    if not isinstance(mode, str) or mode not in _MODES:
        raise ValueError(f"mode: expected one of {_MODES}, got {describe(mode)}")
    return {"family": "neighbor", "mode": mode} if mode in NEIGHBOR else {"family": mode}


def _reservoir(mode: str, given: Any) -> dict[str, Any]:
    """The fields of a plan that mode "reservoir" has beside the others."""
    if given is None:
        return {}
    if mode != "reservoir":
        raise ValueError(f"reservoir: expected None in mode {mode!r}, got {describe(given)}")
    if not isinstance(given, Mapping):
        raise TypeError(f"reservoir: expected a mapping, got {describe(given)}")
    for name in given:
        if name not in RESERVOIR:
            known = tuple(RESERVOIR)
            raise ValueError(f"reservoir: expected options of {known}, got {describe(name)}")
    return dict(given)
