"""Tables of batches for notebooks: what their ``_repr_html_`` returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

__all__ = ["arrays_html", "blocks_html", "table_html", "types_html", "walks_html"]

# Walks that a table shows, and the nodes of each.
_SHOWN = 6
_STEPS_SHOWN = 9
_COUNTS = ("block", "sources", "destinations", "edges")


def table_html(title: str, head: Iterable[Any], table_rows: Iterable[Sequence[Any]]) -> str:
    """Returns a table; the first cell of each row is its heading, and integers have commas."""
    body = "".join(
        f"<tr><th>{_cell(name)}</th>{''.join(f'<td>{_cell(cell)}</td>' for cell in cells)}</tr>"
        for name, *cells in table_rows
    )
    top = "".join(f"<th>{_cell(name)}</th>" for name in head)
    return (
        f"<table><caption>{escape(title)}</caption>"
        f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    )


def blocks_html(title: str, blocks: Iterable[Any]) -> str:
    """Returns a table of the sizes of blocks."""
    return table_html(
        title, _COUNTS, ((f"blocks[{i}]", *_sizes(block)) for i, block in enumerate(blocks))
    )


def types_html(title: str, hops: Iterable[Mapping[Any, Any]]) -> str:
    """Returns a table of the sizes of the blocks of hops by edge type, without empty ones."""
    rows = [
        (f"blocks[{i}][{kind!r}]", *_sizes(block))
        for i, hop in enumerate(hops)
        for kind, block in hop.items()
        if block.num_edges
    ]
    return table_html(title, _COUNTS, rows)


def arrays_html(title: str, arrays: Iterable[tuple[str, Any]]) -> str:
    """Returns a table of the dtypes and shapes of arrays, without those that are None."""
    rows = [
        (name, str(array.dtype).removeprefix("torch."), " x ".join(map(str, array.shape)))
        for name, array in arrays
        if array is not None
    ]
    return table_html(title, ("array", "dtype", "shape"), rows)


def walks_html(title: str, nodes: Any, lengths: Any) -> str:
    """Returns a table of the first walks on the CPU: ``nodes[step][walk]`` up to the lengths."""
    count, steps = len(lengths), len(nodes)
    shown = min(steps, _STEPS_SHOWN)
    more = ["…"] if shown < steps else []
    rows: list[list[Any]] = []
    for walk in range(min(count, _SHOWN)):
        length = int(lengths[walk])
        ids = [str(int(nodes[step][walk])) if step <= length else "" for step in range(shown)]
        rows.append([str(walk), *ids, *more, length])
    if count > _SHOWN:
        rows.append(["…", *[""] * (shown + len(more) + 1)])
    return table_html(title, ["walk", *range(shown), *([""] if more else []), "steps"], rows)


def _sizes(block: Any) -> tuple[int, int, int]:
    return block.num_src_nodes, block.num_dst_nodes, block.num_edges


def _cell(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else escape(str(value))
