"""Options for reading a file of edges, checked: format, columns, numbering."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from pygsampler._arrays.mmap_file import MAGIC
from pygsampler._engine.checks import boolean, describe, integer
from pygsampler._engine.limits import MAX_NODES
from pygsampler._graph.file_writer import require_folder
from pygsampler._graph.named_arrays import EDGES, check_names

FORMATS = ("snap", "csv", "tsv", "parquet", "arrow", "npz", "mtx")

_SUFFIXES = {
    ".txt": "snap",
    ".snap": "snap",
    ".el": "snap",
    ".edges": "snap",
    ".edgelist": "snap",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".npz": "npz",
    ".mtx": "mtx",
}
# The formats with columns besides the ends of the edges.
_WITH_DATA = ("snap", "csv", "tsv", "parquet", "arrow")
_TEXT = ("snap", "csv", "tsv", "mtx")
# The formats that pyarrow reads, too.
TABLES = ("parquet", "arrow", "csv", "tsv")
_BITS = {"int32": 32, "int64": 64}
_MOST_COLUMNS = 1 << 20
# Who has no file is told where to go.
IN_MEMORY = "; graphs and arrays in memory: Graph.from_coo, from_dgl, from_networkx, ..."


def require_file(path: str) -> None:
    """Raises FileNotFoundError and its like, as ``open`` does; ValueError for a pipe."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"source: expected a file of edges, got the folder {path!r}")
    if not stat.S_ISREG(mode):
        kind = "a pipe" if stat.S_ISFIFO(mode) else "a device or socket"
        raise ValueError(
            f"{os.path.basename(path)}: expected a regular file, which can be read twice, "
            f"got {kind}"
        )
    with open(path, "rb") as file:
        if file.read(len(MAGIC)) == MAGIC:
            raise ValueError(
                f"{os.path.basename(path)}: expected a file of edges, got a graph file, which "
                "pgs.Graph.open opens"
            )


def require_target(path: str, source: str | None = None) -> None:
    """Raises for a file that nobody means to lose: only a graph file, or an empty one, is replaced.

    ``source`` is the file of edges, where there is one. FileNotFoundError where the folder is not
    there.
    """
    if not path:
        raise ValueError("target: expected the name of a file, got ''")
    if os.path.exists(path):
        if source is not None and os.path.samefile(source, path):
            raise ValueError(f"target: expected another file than the source, got {path!r}")
        # The writer refuses folders and pipes.
        if not os.path.isfile(path):
            return
        with open(path, "rb") as file:
            found = file.read(len(MAGIC))
        if found not in (b"", MAGIC):
            raise ValueError(
                "target: expected a new file or a graph file to replace, "
                f"got {path!r}, which is neither"
            )
    else:
        require_folder(path)


def format_of(path: str, value: Any) -> str:
    """Returns the format argument, or the format of the file's suffix."""
    listed = ", ".join(FORMATS)
    if value is not None:
        if value not in FORMATS:
            raise ValueError(f"format: expected one of {listed}, got {describe(value)}")
        return str(value)
    found = _by_suffix(path)
    if found is None:
        # Who mistypes a name is not to be told of suffixes.
        require_file(path)
        raise ValueError(
            f"format: expected one of {listed}, since the name {os.path.basename(path)!r} "
            "does not say; got None"
        )
    return found


def has_suffix(path: str) -> bool:
    """True if the name of a file stands for a format."""
    return _by_suffix(path) is not None


def _by_suffix(path: str) -> str | None:
    suffixes = [suffix.lower() for suffix in PurePath(path).suffixes]
    packed = bool(suffixes) and suffixes[-1] == ".gz"
    if packed:
        suffixes.pop()
    found = _SUFFIXES.get(suffixes[-1]) if suffixes else None
    return None if packed and found not in _TEXT else found


def plan_of(
    format: str,
    src: Any,
    dst: Any,
    num_nodes: Any,
    undirected: Any,
    renumber: Any,
    dtype: Any,
    edge_data: Any = None,
    *,
    mixed: bool = False,
) -> dict[str, Any]:
    """The options as the engine takes them; ``mixed`` allows two kinds of nodes."""
    bits = _bits(dtype)
    if renumber is None:
        numbering = "gaps" if format == "snap" else "never"
    else:
        numbering = "always" if boolean(renumber, "renumber") else "never"
    nodes = -1 if num_nodes is None else integer(num_nodes, "num_nodes", 0, MAX_NODES)
    if nodes >= 0 and numbering == "always":
        raise ValueError(
            "num_nodes: expected None with renumber=True, which counts the ids that occur, "
            f"got {nodes}"
        )
    plan: dict[str, Any] = {
        "format": format,
        "src": _column(src, "src"),
        "dst": _column(dst, "dst"),
        "num_nodes": nodes,
        "undirected": boolean(undirected, "undirected"),
        "numbering": numbering,
        "bits": bits,
        "data": _edge_columns(edge_data, format),
        # True if the caller says which nodes there are; for Python alone.
        "decided": renumber is not None or nodes >= 0,
    }
    if mixed and format in (*TABLES, "snap"):
        plan["src"]["mixed"] = True
    return plan


def _bits(dtype: Any) -> int:
    """The width of ids; 0 where nobody says. dtype may be a name, or NumPy's or torch's."""
    name = dtype
    # By the names of their modules: neither package is loaded for this.
    if isinstance(dtype, type) and dtype.__module__ == "numpy":
        name = dtype.__name__
    elif type(dtype).__module__.partition(".")[0] == "numpy":
        name = str(dtype)
    elif type(dtype).__module__ == "torch":
        name = str(dtype).removeprefix("torch.")
    if name is None:
        return 0
    if isinstance(name, str) and name in _BITS:
        return _BITS[name]
    raise ValueError(f'dtype: expected "int32", "int64" or None, got {describe(dtype)}')


def _edge_columns(value: Any, format: str) -> list[dict[str, Any]]:
    """The columns that become arrays over the edges, by the names of these."""
    if value is None:
        return []
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        expected = "a list of names of columns, or a mapping of names to columns"
        raise TypeError(f"edge_data: expected {expected}, got {describe(value)}")
    columns = value if isinstance(value, Mapping) else {name: name for name in value}
    if columns and format not in _WITH_DATA:
        listed = ", ".join(_WITH_DATA)
        raise ValueError(f"edge_data: expected a file of format {listed}, got one of {format}")
    check_names(columns, EDGES)
    return [
        {"name": name, "column": _column(column, f"edge_data[{name!r}]")}
        for name, column in columns.items()
    ]


def words(columns: Mapping[str, Any], format: str) -> list[dict[str, Any]]:
    """The columns of names among those that become arrays; errors call them as ``columns`` does."""
    if format not in _WITH_DATA:
        listed = ", ".join(_WITH_DATA)
        raise ValueError(f"source: expected a file of format {listed}, got one of {format}")
    return [
        {"name": name, "column": _column(column, name), "words": True}
        for name, column in columns.items()
        if column is not None
    ]


def _column(value: Any, where: str) -> dict[str, Any]:
    if value is None:
        return {}
    if isinstance(value, str):
        if not value:
            raise ValueError(f"{where}: expected the name of a column or its place, got ''")
        return {"name": value, "given": True}
    try:
        place = integer(value, where, 0, _MOST_COLUMNS)
    except TypeError:
        expected = "the name of a column or its place from 0"
        raise TypeError(f"{where}: expected {expected}, got {describe(value)}") from None
    return {"index": place, "given": True}
