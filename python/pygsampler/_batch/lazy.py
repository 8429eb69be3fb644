"""``Made``: an attribute of a batch or a block that is made when it is first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import torch


class BlockSource(Protocol):
    """Where the blocks of a torch batch take their tensors from, each when it is first asked for.

    It must not know the batch: a circle would keep the memory until the next collection.
    """

    def of_block(self, place: int, name: str) -> Mapping[str, torch.Tensor | None]:
        """The tensor of a block by its name, and those that were made with it; None for
        ``edge_weights`` where there are none."""
        ...

    def counts(self, place: int) -> tuple[int, int, int]:
        """Sources, destinations and edges of a block."""
        ...

    def dst_offset(self, place: int) -> int: ...

    def destinations(self, place: int) -> torch.Tensor | None:
        """The destination of each edge of a block, as ids; None where torch is to find them."""
        ...

    def edge_index(self, place: int) -> torch.Tensor | None:
        """Likewise sources and destinations, int64 and [2, num_edges]."""
        ...


class BatchSource(BlockSource, Protocol):
    """Likewise of the batch itself."""

    def of_batch(self, name: str) -> torch.Tensor | None:
        """``input_nodes``, ``output_nodes``, ``output_index`` or ``subgraph_ids``."""
        ...

    def hops(self) -> int: ...

    def num_edges(self) -> int:
        """Of all blocks."""
        ...

    def moved(self, move: Any) -> BatchSource | None:
        """All of it, moved at once; None where the tensors are to be moved one by one."""
        ...


class LazyAttribute:
    """An attribute that is made when it is first asked for, and found in the instance from then on.

    A class's ``__getattr__`` would do the same, in three times the time: Python makes an
    AttributeError before it calls that.
    """

    __slots__ = ("_make", "_name")

    def __init__(self, make: Callable[[dict[str, Any], Any, str], Any]) -> None:
        self._make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        known = instance.__dict__
        views = known.get("_views")
        if views is None:
            kind = type(instance).__name__
            raise AttributeError(f"{kind!r} object has no attribute {self._name!r}")
        return self._make(known, views, self._name)
