"""What a sampler samples, and how: checked once, the same for every engine."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from pygsampler._core.checks import boolean, describe, integer
from pygsampler._sampling.fanouts import checked_fanouts
from pygsampler._sampling.seed import signed_seed

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    ) -> Options:
        hops = checked_fanouts(fanouts)
        replace = boolean(replace, "replace")
        frontier = _one_of(frontier, "frontier", _FRONTIERS)
        disjoint = boolean(disjoint, "disjoint")
        ordered = boolean(ordered, "ordered")
        mode = _one_of(mode, "mode", _MODES)
        if (frontier == "new" or disjoint) and mode not in ("auto", "persistent"):
            raise ValueError(
                "mode: expected 'auto' or 'persistent' with frontier='new' or disjoint=True, "
                f"got {mode!r}"
            )
        if map_limit is not None:
            map_limit = integer(map_limit, "map_limit", 1, (1 << 63) - 1)
        return cls(hops, replace, frontier, disjoint, ordered, mode, map_limit)

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
        }
        given = (f"{name}={v!r}" for name, v in self.named().items() if usual[name] != v)
        return ", ".join([str(list(self.fanouts)), *given])


def _one_of(value: Any, name: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise ValueError(f"{name}: expected one of {known}, got {describe(value)}")
    return str(value)
