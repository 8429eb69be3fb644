"""The labels of a graph's nodes: names or integers that the nodes had where they come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any, overload

from pygsampler._arrays import interning
from pygsampler._arrays.array import Array, as_array
from pygsampler._arrays.ids import as_ids
from pygsampler._engine import memory
from pygsampler._engine.checks import describe

_SHOWN = 3
_LISTED = 5


class NodeNames(Sequence[str]):
    """The names of nodes by id, read-only, stored as UTF-8 in memory or in the graph's file.

    An id gives the name of one node, a slice or an array of ids (of a batch, a NumPy array, ...)
    gives a list of names. ``tolist()`` has them all.
    """

    __slots__ = ("_bytes", "_offsets")

    def __init__(self, offsets: Array, text: Array) -> None:
        self._offsets, self._bytes = offsets, text

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @overload
    def __getitem__(self, key: int) -> str: ...

    @overload
    def __getitem__(self, key: Any) -> list[str]: ...

    def __getitem__(self, key: Any) -> Any:
        count = len(self)
        if isinstance(key, slice):
            start, stop, step = key.indices(count)
            if step == 1:
                return self._between(start, max(start, stop))
            return [self._name(i) for i in range(start, stop, step)]
        if hasattr(key, "__index__") and not getattr(key, "shape", ()):
            place = key.__index__()
            if not -count <= place < count:
                raise IndexError(f"node_names: expected an id below {count}, got {place}")
            return self._name(place % count)
        view = as_ids(key.cpu() if hasattr(key, "cpu") else key, "node_names")
        ids = memory.integer_view(view.address, view.length, view.bits)
        for place, node in enumerate(ids):
            if not 0 <= node < count:
                raise IndexError(f"node_names[{place}]: expected an id in [0, {count}), got {node}")
        offsets, text = self._offsets._integers(), self._bytes._bytes()
        return [str(text[offsets[node] : offsets[node + 1]], "utf-8") for node in ids]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tolist())

    def tolist(self) -> list[str]:
        """All names, by id."""
        return self._between(0, len(self))

    def _name(self, node: int) -> str:
        start, end = self._offsets[node], self._offsets[node + 1]
        return str(self._bytes._bytes()[start:end], "utf-8")

    def _between(self, start: int, end: int) -> list[str]:
        offsets = self._offsets[start : end + 1].tolist()
        text = self._bytes._bytes()
        return [str(text[a:b], "utf-8") for a, b in pairwise(offsets)]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Sequence) and not isinstance(other, str):
            return self.tolist() == list(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = [repr(name) for name in self[:_SHOWN]]
        if len(self) > _SHOWN:
            shown.append("...")
        return f"NodeNames([{', '.join(shown)}], length={len(self)})"


def names_of(arrays: Mapping[str, Array]) -> NodeNames | None:
    """The names of nodes in the further arrays of a graph; None where it has none."""
    if interning.OFFSETS not in arrays:
        return None
    return NodeNames(arrays[interning.OFFSETS], arrays[interning.BYTES])


class Lookup:
    """Finds the ids of nodes by their labels, which may stand in any order."""

    __slots__ = ("_ids", "_places", "_sorted")

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        import numpy as np

        names = names_of(arrays)
        self._places: dict[str, int] | None = None
        if names is not None:
            self._places = {name: i for i, name in enumerate(names.tolist())}
            return
        if interning.IDS not in arrays:
            raise ValueError(
                "index_of: expected a graph whose nodes have names or ids of their own, got one "
                "whose nodes are their numbers; from_coo(..., renumber=True) keeps names"
            )
        ids = arrays[interning.IDS].numpy()
        self._sorted = np.argsort(ids, kind="stable")
        self._ids = ids[self._sorted]

    def close(self) -> None:
        """Lets go of the table."""
        self._places = {}

    def ids_of(self, labels: Any, where: str) -> Any:
        """The ids of nodes by labels, an int64 NumPy array; KeyError names the unknown ones."""
        import numpy as np

        if self._places is not None:
            wanted: Any = interning.texts(labels, where)
            found = np.fromiter(
                map(self._places.get, wanted, [-1] * len(wanted)), np.int64, len(wanted)
            )
        else:
            wanted = interning.integers(labels, where)
            places = np.searchsorted(self._ids, wanted)
            places[places == len(self._ids)] = 0
            if len(self._ids):
                found = np.where(self._ids[places] == wanted, self._sorted[places], -1)
            else:
                found = np.full(len(wanted), -1)
        missing = np.flatnonzero(found < 0)
        if len(missing):
            unknown = dict.fromkeys(wanted[i] for i in missing[:_LISTED].tolist())
            text = ", ".join(repr(each) if isinstance(each, str) else str(each) for each in unknown)
            more = f" ({len(missing)} of {len(found)} are unknown)" if len(found) > 1 else ""
            raise KeyError(f"{where}: expected nodes of the graph, got {text}{more}")
        return found


def label_arrays(labels: Mapping[str, Any]) -> Mapping[str, Array]:
    """Converts labels, as ``Interned.arrays`` has them, to further arrays of a graph."""
    return MappingProxyType({name: as_array(value, name) for name, value in labels.items()})


def index_of(lookup: Lookup, labels: Any, where: str, dtype: str) -> Any:
    """The ids of nodes by labels as an array, or one id of the label of one node."""
    if (
        isinstance(labels, (str, int))
        or interning.has_text(type(labels))
        or (getattr(labels, "shape", None) == () and hasattr(labels, "__index__"))
    ):
        return int(lookup.ids_of([labels], where)[0])
    if labels is None or isinstance(labels, (bytes, Mapping)):
        raise TypeError(f"{where}: expected names or ids of nodes, got {describe(labels)}")
    return as_array(lookup.ids_of(labels, where).astype(dtype), where)
