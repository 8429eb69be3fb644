"""What a sampler samples, and how: checked once, the same for every engine."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from pygsampler._core.checks import boolean, describe, integer
from pygsampler._sampling.fanouts import checked_fanouts
from pygsampler._sampling.seed import signed_seed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pygsampler.graph import Graph

_MODES = ("auto", "persistent", "fused", "bsp", "queue")
_FRONTIERS = ("all", "new")


@dataclass(frozen=True)
class Options:
    """The arguments of a ``PGSampler``; ``PGSampler`` says what they mean."""

    fanouts: tuple[int, ...]
    replace: bool
    frontier: str
    disjoint: bool
    ordered: bool
    mode: str
    map_limit: int | None
    prob: str | None
    mask: str | None

    @classmethod
    def checked(
        cls,
        fanouts: Sequence[int],
        *,
        replace: bool,
        frontier: str,
        disjoint: bool,
        ordered: bool,
        mode: str,
        map_limit: int | None,
        prob: str | None,
        mask: str | None,
    ) -> Options:
        hops = checked_fanouts(fanouts)
        replace = boolean(replace, "replace")
        frontier = _one_of(frontier, "frontier", _FRONTIERS)
        disjoint = boolean(disjoint, "disjoint")
        ordered = boolean(ordered, "ordered")
        mode = _one_of(mode, "mode", _MODES)
        prob = _name(prob, "prob")
        mask = _name(mask, "mask")
        if prob is not None and mask is not None:
            raise ValueError(
                "prob, mask: expected at most one of them, got both; "
                "weights of 0 leave edges out as a mask does"
            )
        asked = {
            "frontier='new'": frontier == "new",
            "disjoint=True": disjoint,
            "prob": prob is not None,
            "mask": mask is not None,
        }
        if any(asked.values()) and mode not in ("auto", "persistent"):
            what = next(name for name, is_ in asked.items() if is_)
            raise ValueError(f"mode: expected 'auto' or 'persistent' with {what}, got {mode!r}")
        if map_limit is not None:
            map_limit = integer(map_limit, "map_limit", 1, (1 << 63) - 1)
        return cls(hops, replace, frontier, disjoint, ordered, mode, map_limit, prob, mask)

    @property
    def drawn_by(self) -> tuple[str, str] | None:
        """``"prob"`` or ``"mask"``, and the name of that edge array; None: edges are equal."""
        if self.prob is not None:
            return "prob", self.prob
        return None if self.mask is None else ("mask", self.mask)

    def graph_of(self, graph: Graph) -> Graph:
        """The graph that the engine samples: of the edges with weights, or that the mask leaves."""
        return graph if self.drawn_by is None else graph._drawn_by(*self.drawn_by)

    def named(self) -> dict[str, Any]:
        """The arguments by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def shape(self) -> tuple[Any, ...]:
        """What the size of a batch depends on."""
        return self.fanouts, self.replace, self.frontier, self.disjoint

    def arguments(self, fanouts: int, seed: int) -> tuple[Any, ...]:
        """As the engine takes them; ``fanouts`` is the address of an int64 for each hop."""
        return (
            fanouts,
            len(self.fanouts),
            int(self.replace),
            signed_seed(seed),
            self.mode,
            self.map_limit or 0,
            int(self.ordered),
            int(self.frontier == "new"),
            int(self.disjoint),
        )

    def __str__(self) -> str:
        """As they are written in a call, but for those that are as by default."""
        usual = {
            "fanouts": self.fanouts,
            "replace": False,
            "frontier": "all",
            "disjoint": False,
            "ordered": True,
            "mode": "auto",
            "map_limit": None,
            "prob": None,
            "mask": None,
        }
        given = (f"{name}={v!r}" for name, v in self.named().items() if usual[name] != v)
        return ", ".join([str(list(self.fanouts)), *given])


def _name(value: Any, where: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{where}: expected the name of an edge array, got {describe(value)}")
    return value


def _one_of(value: Any, name: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise ValueError(f"{name}: expected one of {known}, got {describe(value)}")
    return str(value)
