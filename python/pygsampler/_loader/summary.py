"""``Stats``: the figures of an epoch, as a dict that prints as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["Stats", "size_text"]

_LABELS = {
    "epoch": "epoch",
    "batches": "batches",
    "edges": "sampled edges",
    "seconds": "time",
    "next_seconds": "time in next()",
    "waits": "waits for a batch",
    "waiting_seconds": "time of these waits",
    "waiting_share": "share of time waiting for data",
    "gathering_share": "share of time reading features",
    "steps": "steps that shares are of",
    "held_back": "steps that began no batch",
    "pauses": "pauses with a full queue",
    "hit_rate": "share of rows from caches",
}
_QUEUES = {"sampled": "batches ahead, sampled", "gathered": "batches ahead, with features"}
_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


class Stats(dict[str, Any]):
    """The figures of ``stats()`` by their keys; ``print`` shows a table with plain names."""

    __slots__ = ()

    def __str__(self) -> str:
        lines = list(_lines(self))
        width = max((len(label) for label, _ in lines), default=0)
        return "\n".join(f"{label:{width}}  {text}" for label, text in lines)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """The table in IPython, too."""
        printer.text(str(self))


def _lines(stats: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in stats.items():
        if key == "queues":
            for name, queue in value.items():
                text = f"{queue['mean']:.1f} on average, at least {queue['min']}"
                none = f"none at {queue['empty']:.1%} of {queue['looks']:,} looks"
                yield _QUEUES.get(name, name), f"{text}, {none}"
        elif key == "features":
            for name, read in value.items():
                yield f"features {name!r}", _read(read)
        elif key == "bytes":
            yield "feature bytes read", _sizes(value)
        else:
            yield _LABELS.get(key, key), _number(key, value)


def _read(read: Mapping[str, Any]) -> str:
    """Returns the line of a table of features."""
    text = f"{read['rows']:,} rows in {read['reads']:,} reads, {_sizes(read['bytes'])}"
    return f"{text}, {read['hits']:,} from the cache" if "hits" in read else text


def _sizes(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{size_text(size)} from {place}" for place, size in sizes.items()) or "none"


def size_text(size: int) -> str:
    """Returns a number of bytes with its unit."""
    for step, unit in _UNITS:
        if size >= step:
            return f"{size / step:.1f} {unit}"
    return f"{size} B"


def _number(key: str, value: Any) -> str:
    if value is None:
        return "not measured" if key == "gathering_share" else "no cache"
    if key.endswith("seconds"):
        return f"{value:.3f} s"
    return f"{value:.1%}" if key.endswith(("share", "rate")) else f"{value:,}"
