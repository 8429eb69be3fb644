"""``MultiRW``: walks of several roots."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pygsampler.walks.random_walk import RandomWalk

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MultiRW"]


def __dir__() -> list[str]:
    return sorted(__all__)


class MultiRW(RandomWalk):
    """Frontier sampling (Ribeiro and Towsley, 2010): one walk that steps from one of several roots.

    A step takes one of all edges that leave the walk's vertices, each as likely as any other, and
    the vertex that it leaves moves along it. So a root is chosen by its degree; one without edges
    never is, and where all are such the walk ends. GraphSAINT's and NextDoor's multi-dimensional
    walk.

    ``sample(graph, seeds)`` takes the roots of one walk after another, ``roots`` of them each. The
    ``Walks`` have the vertex that each step arrived at (``nodes``, whose first column is the first
    root) and which of the roots stepped (``slots``).

    Parameters
    ----------
    roots : int
        Of a walk, 1 to 4096; the number of seeds is a multiple of it.
    budget : int
        Steps of a walk.
    direction, edge_ids, seed
        As for ``RandomWalk``.
    """

    __slots__ = ()

    _called: ClassVar[Mapping[str, str]] = {"length": "budget"}

    def __init__(
        self,
        roots: int,
        budget: int,
        *,
        direction: str = "out",
        edge_ids: bool = False,
        seed: int | None = None,
    ) -> None:
        self._begin(seed, length=budget, roots=roots, direction=direction, edge_ids=edge_ids)

    @property
    def roots(self) -> int:
        """Of a walk."""
        value: int = self._plan["roots"]
        return value
