"""``Contexts``: rows around each seed, as dense arrays of one length, for transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pygsampler._batch import layout as at
from pygsampler._batch.engine_result import ArrayT, EngineResult
from pygsampler._batch.html_tables import arrays_html

if TYPE_CHECKING:
    from numpy import ndarray
    from torch import Tensor

    from pygsampler._engine.memory import Memory

__all__ = ["Contexts"]


def __dir__() -> list[str]:
    return sorted(__all__)


class Contexts(EngineResult[ArrayT]):
    """Contexts of fixed length: for each seed the rows around it, padded to one length.

    ``len(contexts)`` of them, in the order of the seeds; of a heterogeneous graph the seeds of the
    first node type come first, then those of the second, and so on. All matrices have the shape
    [seeds, ``length``], are views of one memory, and have -1 where a context has no row. ``form``
    says whose arrays they are: ``"array"`` (``pygsampler.Array``), ``"torch"``, as a ``DataLoader``
    yields them, or ``"numpy"``. Contexts on a graph on a GPU are on that GPU, complete for every
    stream; ``cpu()`` copies them.
    """

    _signature, _num_words = at.CONTEXT_MAGIC, at.CONTEXT_WORDS
    _descriptors: ClassVar = {row.name: row for row in at.CONTEXT_ROWS}
    _makers, _noun = "samplers.context, and by loaders", "contexts"

    node_types: tuple[str, ...] | None = None
    """The names that ``types`` counts; None for contexts on a homogeneous graph."""

    @classmethod
    def _from_memory(
        cls, memory: Memory, epoch: int, batch: int, seed: int, node_types: tuple[str, ...] | None
    ) -> Contexts[Any]:
        attributes = {"epoch": epoch, "batch": batch, "seed": seed, "node_types": node_types}
        return cls._of_memory(memory, memory.data, memory.header, memory.device, attributes)

    def __len__(self) -> int:
        return self._words[at.CONTEXT_NUM_SEEDS]

    @property
    def length(self) -> int:
        """The number of rows that a context has room for."""
        return self._words[at.CONTEXT_PLACES]

    @property
    def nodes(self) -> ArrayT:
        """The node of each row: shape [seeds, length], int64. The first of a context is its seed.

        Ids count within the row's node type.
        """
        nodes: ArrayT = self._array("nodes")
        return nodes

    @property
    def types(self) -> ArrayT | None:
        """The node type of each row, a place in ``node_types``: shape [seeds, length], int32.

        None for contexts on a homogeneous graph.
        """
        types: ArrayT | None = self._array("types")
        return types

    @property
    def hops(self) -> ArrayT:
        """The number of edges between each row and the seed: shape [seeds, length], int32."""
        hops: ArrayT = self._array("hops")
        return hops

    @property
    def parents(self) -> ArrayT:
        """The place of the row that each row was reached from: shape [seeds, length], int32.

        It is a column of the same context, before the row's own; -1 for the seed.
        """
        parents: ArrayT = self._array("parents")
        return parents

    @property
    def mask(self) -> ArrayT:
        """True where there is a row: shape [seeds, length], bool."""
        mask: ArrayT = self._array("mask")
        return mask

    @property
    def cells(self) -> ArrayT | None:
        """The number of cells of each row: shape [seeds, length], int32; 0 where there is no row.

        None for contexts whose budget counts rows.
        """
        cells: ArrayT | None = self._array("cells")
        return cells

    @property
    def lengths(self) -> ArrayT:
        """The number of rows of each context: shape [seeds], int32."""
        lengths: ArrayT = self._array("lengths")
        return lengths

    @property
    def num_edges(self) -> int:
        """The number of rows that all contexts have room for, each of which an edge may reach."""
        return len(self) * self.length

    def torch(self) -> Contexts[Tensor]:
        """Returns the same contexts with torch tensors, which share their memory."""
        contexts: Contexts[Tensor] = self._in_form("torch")
        return contexts

    def numpy(self) -> Contexts[ndarray[Any, Any]]:
        """Returns the same contexts with NumPy arrays, which share their memory.

        TypeError for contexts on a device, which ``cpu()`` copies.
        """
        contexts: Contexts[ndarray[Any, Any]] = self._in_form("numpy")
        return contexts

    def _shaped(self, name: str, flat: Any) -> Any:
        if name == "lengths" or flat is None:
            return flat
        return self._matrix(flat, 0, len(self), self.length)

    def __repr__(self) -> str:
        return (
            f"Contexts({len(self)}, length={self.length}, epoch={self.epoch}, "
            f"batch={self.batch}{self._place()})"
        )

    def _repr_html_(self) -> str:
        names = ("nodes", "types", "hops", "parents", "mask", "cells", "lengths")
        return arrays_html(repr(self), [(name, getattr(self, name)) for name in names])
