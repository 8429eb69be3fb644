"""The sampler that a plan is of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pygsampler._arrays.datetimes import datetime_kind
from pygsampler._engine.checks import describe
from pygsampler._sampling.engine_sampler import EngineSampler, TemporalEngineSampler
from pygsampler._sampling.extensions import FAMILIES
from pygsampler._sampling.plan import Plan
from pygsampler._sampling.sampler import Sampler
from pygsampler.programs import Program
from pygsampler.samplers.hgt import HGTSampler
from pygsampler.samplers.labor import LaborSampler
from pygsampler.samplers.neighbor import PGSampler
from pygsampler.samplers.neighbor_plan import rule_of_plan
from pygsampler.walks.metapath_walk import HeteroWalk, MetaPathWalk
from pygsampler.walks.pinsage import PinSAGE
from pygsampler.walks.random_walk import MODE_OPTIONS, RandomWalk

# Whose batches are a function of their plans, and, along types of edges, of the path.
SERVED = (
    HGTSampler,
    HeteroWalk,
    LaborSampler,
    MetaPathWalk,
    PGSampler,
    PinSAGE,
    Program,
    RandomWalk,
    *(kind for family in FAMILIES.values() for kind in family.samplers),
)


def plan_entry(sampler: Any) -> tuple[Plan, tuple[Any, ...], bool]:
    """Returns a sampler's plan, its edge types, and whether its window is a timedelta64.

    The edge types are those of a metapath. TypeError for other objects, ValueError for a program
    with a tensor of all nodes.
    """
    if type(sampler) not in SERVED:
        raise TypeError(
            "sampler: expected a plan, or one of the package's samplers that the engine runs, got "
            f"{describe(sampler)}"
        )
    own = sampler._node_inputs.contents if isinstance(sampler, Program) else {}
    if own:
        raise ValueError(
            f"sampler: expected a program that a plan describes, got one with a row for each node "
            f"in {', '.join(own)}; put them on the nodes of the server's graph, as ndata"
        )
    rule = getattr(sampler, "temporal", None)
    spans = rule is not None and datetime_kind(rule.window) == "m"
    return sampler.plan, tuple(getattr(sampler, "_path", ())), spans


def sampler_from_plan(
    plan: Plan, seed: int, path: Sequence[Any] = (), spans: bool = False
) -> Sampler[Any]:
    """A sampler of a plan, whose batches are those of the one that the plan was taken of.

    ``spans``: the plan's window was of timedelta64.
    """
    family = plan["family"]
    if spans and plan.get("time") is None:
        raise ValueError("dates: expected no window for a plan without time, got one")
    if path:
        return _along(plan, seed, list(path))
    if family == "program":
        fields = {name: value for name, value in plan.items() if name != "family"}
        return Program(fields, seed, "program", {})
    kind: Any = {"hgt": HGTSampler, "labor": LaborSampler}.get(family, PGSampler)
    if family in FAMILIES:
        kind = FAMILIES[family].samplers[0]
    elif family == "walk":
        kind = RandomWalk if plan["top_visits"] is None else PinSAGE
    made = object.__new__(kind)
    Sampler.__init__(made, seed)
    EngineSampler.__init__(made, plan, made.seed)
    if kind is PGSampler:
        made._typed = made._given = None
        made._rule = rule_of_plan(plan, spans)
        made._timed = TemporalEngineSampler(plan, made.seed) if family == "temporal" else None
    elif kind is LaborSampler:
        made._fanouts, made._program = plan["fanouts"], None
    elif kind is PinSAGE:
        made._path = ()
    sampler: Sampler[Any] = made
    return sampler


def _along(plan: Plan, seed: int, path: list[Any]) -> Sampler[Any]:
    """Returns a sampler along edge types, if its plan is equal to the plan of the request."""
    if plan["family"] != "walk":
        raise ValueError(
            f"metapath: expected none for a plan of {plan['family']!r}, got {len(path)} types"
        )
    about = {
        name: plan[name] for name in ("prob", "stop", "direction", "walks_per_seed", "edge_ids")
    }
    made: RandomWalk
    if plan["top_visits"] is None:
        modes = {name: plan[name] for name in MODE_OPTIONS}
        made = RandomWalk(plan["length"], metapath=path, mode_options=modes, **about, seed=seed)
    else:
        made = PinSAGE(
            plan["length"] // len(path),
            plan["stop"],
            plan["walks_per_seed"],
            plan["top_visits"],
            metapath=path,
            prob=plan["prob"],
            direction=plan["direction"],
            mode_options={"layout": plan["layout"]},
            seed=seed,
        )
    if made.plan != plan:
        raise ValueError(f"plan: expected that of {made!r} with this metapath, got {plan!r}")
    return made
