"""The seeds that a command line names: all nodes, a list, or a file of ids."""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pygsampler._cli.edge_table import ARROW, PARQUET

if TYPE_CHECKING:
    from pygsampler._cli.labels import Labels

_LIST = re.compile(r"\s*\d+(\s*,\s*\d+)*\s*,?\s*")


def read_seeds(text: str) -> Sequence[int] | None:
    """Reads node ids from a text or a file; None stands for all nodes.

    ``text`` is "all", ids with commas between them, or a file: text with an id on each line (lines
    that begin with # are passed over), .npy, or Arrow IPC and Parquet with a column of ids, the one
    called "node" or "seed" where there are several. click.BadParameter for a text that is none of
    these, ValueError for a file with other content than ids.
    """
    if text.strip() == "all":
        return None
    if _LIST.fullmatch(text):
        return _integers(text.strip().rstrip(",").split(","), "--seeds")
    path = Path(text)
    if not path.is_file():
        raise click.BadParameter(
            f'expected "all", ids like 1,2,3 or a file of ids, got {text!r}', param_hint="--seeds"
        )
    if path.suffix == ".npy":
        return _numpy(path)
    if path.suffix in ARROW + PARQUET:
        return _column(path)
    return _lines(path)


def seeds_of(graph: Any, labels: Labels, kind: str | None, text: str) -> Sequence[int]:
    """Returns the nodes of a type of the graph that ``text`` names, by their labels.

    ``text`` is as for ``read_seeds``. If nodes have names it may have names instead of ids, which
    are numbers of nodes then. IndexError for labels that no node has.
    """
    count = graph.num_nodes if kind is None else graph.num_nodes[kind]
    if labels.names(kind) is None:
        return _in_graph(read_seeds(text), count, labels.ids(kind))
    names = _read_names(text)
    if names is None:
        return _in_graph(read_seeds(text), count, None)
    try:
        found = graph.index_of(names) if kind is None else graph.index_of({kind: names})[kind]
    except KeyError as error:
        if all(map(str.isdecimal, names)):
            return _in_graph(_integers(names, "--seeds"), count, None)
        raise IndexError(str(error.args[0]).replace("labels", "--seeds", 1)) from None
    return array("q", found.tolist())


def _read_names(text: str) -> list[str] | None:
    """Names of nodes, or numbers as text; None for all nodes, and for a file of integers."""
    path = Path(text)
    if text.strip() == "all" or path.suffix == ".npy":
        return None
    if not path.is_file():
        return [name.strip() for name in text.split(",") if name.strip()]
    if path.suffix in ARROW + PARQUET:
        import pyarrow as pa

        column = _table_column(path)
        return None if pa.types.is_integer(column.type) else list(map(str, column.to_pylist()))
    with open(path, encoding="utf-8") as lines:
        return [name for line in lines if (name := line.strip()) and not name.startswith("#")]


def _in_graph(seeds: Sequence[int] | None, count: int, ids: Any) -> Sequence[int]:
    """The nodes of so many that are meant; ``ids`` is the map to original ids, or None.

    IndexError for one that the graph does not have.
    """
    if seeds is None:
        return range(count)
    if ids is None:
        if seeds and not 0 <= min(seeds) <= max(seeds) < count:
            place = next(i for i, seed in enumerate(seeds) if not 0 <= seed < count)
            raise IndexError(f"seeds[{place}]: expected a node in [0, {count}), got {seeds[place]}")
        return seeds
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pc.index_in(pa.array(seeds, pa.int64()), value_set=pa.array(ids))
    if found.null_count:
        place = found.is_null().index(True).as_py()
        raise IndexError(f"seeds[{place}]: expected the original id of a node, got {seeds[place]}")
    return _words(found)


def _integers(texts: Sequence[str], where: str) -> array[int]:
    values = array("q")
    for place, text in enumerate(texts):
        try:
            values.append(int(text))
        except (ValueError, OverflowError):
            raise _not_an_id(f"{where}[{place}]", text.strip()) from None
    return values


def _not_an_id(where: str, text: str) -> ValueError:
    return ValueError(f"{where}: expected an integer of 64 bits, got {text[:40]!r}")


def _lines(path: Path) -> array[int]:
    values = array("q")
    try:
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                text = line.strip()
                if not text or text.startswith("#"):
                    continue
                try:
                    values.append(int(text))
                except (ValueError, OverflowError):
                    raise _not_an_id(f"{path}, line {number}", text) from None
    except UnicodeDecodeError:
        raise ValueError(f"{path}: expected text with an id on each line, got bytes") from None
    return values


def _numpy(path: Path) -> Sequence[int]:
    import numpy as np

    try:
        values = np.load(path, allow_pickle=False)
    except (ValueError, EOFError):
        raise ValueError(f"{path}: expected a file that numpy.save wrote, of integers") from None
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "iu" or values.ndim != 1:
        raise ValueError(f"{path}: expected a one-dimensional array of integers")
    return array("q", values.astype(np.int64).tobytes())


def _column(path: Path) -> array[int]:
    import pyarrow as pa

    column = _table_column(path)
    if not pa.types.is_integer(column.type):
        raise ValueError(f"{path}: expected a column of integers, got {column.type}")
    return _words(*column.chunks)


def _table_column(path: Path) -> Any:
    """The column of seeds of a table: integers or names, without nulls."""
    import pyarrow as pa

    format_ = "Parquet" if path.suffix in PARQUET else "Arrow IPC"
    try:
        if path.suffix in PARQUET:
            import pyarrow.parquet as pq

            name = _name_of_ids(path, pq.read_schema(path).names)
            column = pq.read_table(path, columns=[name]).column(name)
        else:
            with pa.memory_map(str(path)) as source:
                table = pa.ipc.open_file(source).read_all()
            name = _name_of_ids(path, table.column_names)
            column = table.column(name)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path}: expected a whole {format_} file, got {error}") from None
    kind = column.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if not (pa.types.is_integer(kind) or is_text) or column.null_count:
        raise ValueError(f"{path}: column {name!r}: expected integers, got {kind}")
    return column


def _name_of_ids(path: Path, names: list[str]) -> str:
    for name in ("node", "seed"):
        if name in names:
            return name
    if len(names) != 1:
        raise ValueError(f"{path}: expected one column of ids, or one called node, got {names}")
    return names[0]


def _words(*chunks: Any) -> array[int]:
    """The integers of Arrow arrays without nulls."""
    import pyarrow as pa

    values = array("q")
    for chunk in chunks:
        words = chunk.cast(pa.int64())
        if len(words):
            # The buffer of a slice is that of the whole.
            first = 8 * words.offset
            values.frombytes(memoryview(words.buffers()[1])[first : first + 8 * len(words)])
    return values
