"""``neighbor_plan``: the plan of a ``PGSampler``'s options, of the family that they ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pygsampler._arrays.datetimes import (
    SPAN_RANGE,
    NanosecondTimes,
    as_nanoseconds,
    datetime_kind,
)
from pygsampler._engine.checks import describe
from pygsampler._graph.schema import relation_name
from pygsampler._sampling.extensions import MODES
from pygsampler._sampling.plan import ByRelation, Plan
from pygsampler.samplers.temporal import Temporal, as_rule

# The window of a plan that has none.
_NO_WINDOW = 2.0**62

# The options that every family takes.
_COMMON = ("fanouts", "replace", "frontier", "prob", "mask", "edge_weights")

# The modes of the family of neighbors; the registered modes are families of their own.
NEIGHBOR = ("auto", "persistent")


def neighbor_plan(options: Mapping[str, Any]) -> Plan:
    """Returns the plan of all options by their names, ``fanouts`` among them, but for the seed."""
    by_type = options["default_fanout"] is not None or _has_types(options["fanouts"])
    mode, rule = options["mode"], as_rule(options["temporal"])
    family, of_mode = _family(mode), _of_mode(mode, options["mode_options"])
    if family["family"] != "neighbor" and (rule is not None or by_type):
        given = "temporal" if rule is not None else "fanouts by edge type"
        raise ValueError(f"mode: expected one of {NEIGHBOR} with {given}, got {mode!r}")
    if by_type:
        return hetero_plan(options)
    if rule is not None:
        return Plan(family="temporal", **rule_fields(rule), **_select(options, *_COMMON))
    return Plan(
        **family,
        **of_mode,
        **_select(options, *_COMMON, "disjoint", "map_bytes"),
    )


def hetero_plan(options: Mapping[str, Any]) -> Plan:
    """Returns the plan of the same options for a heterogeneous graph."""
    hops = fanouts_by_name(options["fanouts"], options["default_fanout"])
    rule = as_rule(options["temporal"])
    if options["prob"] is not None and options["mask"] is not None:
        raise ValueError("prob, mask: expected at most one of them, got both")
    fields = _select(options, *_COMMON, "default_fanout", "map_bytes")
    fields |= {"fanouts": hops, "disjoint": options["disjoint"] or rule is not None}
    return Plan(family="typed", **fields, **({} if rule is None else rule_fields(rule)))


def fanouts_by_name(fanouts: Any, default_fanout: int | None) -> list[Any]:
    """Fanouts of hops whose numbers by edge type are by the types' names."""
    for i, hop in enumerate(fanouts):
        if isinstance(hop, Mapping) and not hop and default_fanout is None:
            raise ValueError(f"fanouts[{i}]: expected a number for each edge type, got none")
    return [
        _by_name(hop, f"fanouts[{i}]") if isinstance(hop, Mapping) else hop
        for i, hop in enumerate(fanouts)
    ]


def _by_name(hop: Mapping[Any, Any], where: str) -> ByRelation:
    """Returns the fanouts of a hop by edge type; the engine reads full and short names of types."""
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


def _select(options: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: options[name] for name in names}


def _has_types(fanouts: Any) -> bool:
    """True if some hop takes other numbers of one edge type than of another."""
    return isinstance(fanouts, (list, tuple)) and any(isinstance(n, Mapping) for n in fanouts)


def rule_fields(rule: Temporal) -> dict[str, Any]:
    """Returns the fields that say which edges a bound leaves."""
    window = rule.window
    kind = datetime_kind(window)
    if kind == "M":
        raise TypeError(f"window: expected a number or timedelta64, got {window.dtype}")
    if kind and len(getattr(window, "shape", ())) > 0:
        raise TypeError(f"window: expected one span for all seeds, got {describe(window)}")
    length = as_nanoseconds(window, "window")
    if kind and not 0 <= length <= _NO_WINDOW:
        raise ValueError(f"window: expected {SPAN_RANGE}, got {window}")
    return {
        "time": rule.attr,
        "compare": "le" if rule.inclusive else "lt",
        "window": length,
        "carry": rule.carry,
        "strategy": rule.strategy,
    }


def rule_of_plan(plan: Plan, spans: bool) -> Temporal | None:
    """Returns the rule that a plan has; with ``spans`` its window was one of timedelta64."""
    if plan.get("time") is None:
        return None
    window = plan["window"]
    if spans:
        window = NanosecondTimes(window, "timedelta64[ns]")
    elif window is not None and window >= _NO_WINDOW:
        window = None
    inclusive = plan["compare"] == "le"
    return Temporal(plan["time"], plan["strategy"], window, inclusive, plan["carry"])


def _family(mode: Any) -> dict[str, str]:
    """Returns the fields of a plan that a mode sets: its family, and the mode of neighbors."""
    if not isinstance(mode, str) or mode not in (*NEIGHBOR, *MODES):
        raise ValueError(f"mode: expected one of {(*NEIGHBOR, *MODES)}, got {describe(mode)}")
    return {"family": "neighbor", "mode": mode} if mode in NEIGHBOR else {"family": mode}


def options_of_mode(mode: str) -> Mapping[str, Any]:
    """Returns the options of a mode, with their default values."""
    return MODES[mode].options if mode in MODES else {}


def _of_mode(mode: str, mode_options: Any) -> dict[str, Any]:
    """Returns the fields of a plan that one mode has and others have not."""
    if mode_options is None:
        return {}
    if not isinstance(mode_options, Mapping):
        raise TypeError(f"mode_options: expected a mapping, got {describe(mode_options)}")
    known = options_of_mode(mode)
    for name in mode_options:
        if name not in known:
            expected = f"options of {tuple(known)}" if known else "none"
            raise ValueError(
                f"mode_options: expected {expected} in mode {mode!r}, got {describe(name)}"
            )
    return dict(mode_options)
