"""Sources of edges: one file, or a folder, a list or a pattern of files."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pygsampler._engine.checks import describe
from pygsampler._graph.file import as_path
from pygsampler.datasets import _read_options

# Names that begin so are those of logs and leftovers, as .ipynb_checkpoints and _temporary.
_HIDDEN = (".", "_")


class Files(NamedTuple):
    """The files of edges in their order, and what errors call them together."""

    paths: tuple[str, ...]
    name: str

    @property
    def one(self) -> bool:
        """True for a single file, which the engine reads by itself."""
        return len(self.paths) == 1


def files_of(source: Any, format: str | None = None) -> Files:
    """Returns the files of a path, a folder, a pattern with ``*``, ``?`` or ``[``, or a list.

    Files of a folder, in folders below it too, and of a pattern are in the order of their names;
    files and folders of names with a dot or an underscore in front are passed over, and without
    ``format`` files of unknown suffixes. FileNotFoundError where there are none.
    """
    if isinstance(source, (list, tuple)):
        if not source:
            raise ValueError("source: expected at least one file of edges, got none")
        paths = tuple(as_path(each, f"source[{i}]") for i, each in enumerate(source))
        for path in paths:
            _read_options.require_file(path)
        return Files(paths, os.path.basename(paths[0]))
    path = as_path(source, "source", _read_options.IN_MEMORY)
    if os.path.isdir(path):
        found = [
            os.path.join(folder, name)
            for folder, names in _folders(path)
            for name in names
            if (format or _read_options.has_suffix(name)) and not name.startswith(_HIDDEN)
        ]
        if not found:
            raise FileNotFoundError(
                f"source: expected files of edges in the folder {path!r}, such as .parquet, "
                f"got none{_others(path)}"
            )
    elif glob.has_magic(path) and not os.path.exists(path):
        found = [each for each in glob.glob(path, recursive=True) if os.path.isfile(each)]
        if not found:
            raise FileNotFoundError(f"source: expected files of the pattern {path!r}, got none")
    else:
        return Files((path,), os.path.basename(path))
    return Files(tuple(sorted(found)), os.path.basename(path.rstrip(os.sep)) or path)


def format_of(files: Files, value: Any) -> str:
    """Returns the format of all files: the argument, or the format of their suffixes."""
    found = {_read_options.format_of(path, value): path for path in reversed(files.paths)}
    if len(found) > 1:
        listed = ", ".join(f"{kind} ({os.path.basename(path)})" for kind, path in found.items())
        raise ValueError(f"{files.name}: expected files of one format, got {listed}")
    (kind,) = found
    if not files.one and kind not in _read_options.TABLES:
        raise ValueError(
            f"{files.name}: expected one file of format {kind}, got {len(files.paths)}; "
            f"several are read of {', '.join(_read_options.TABLES)}"
        )
    return kind


def is_schema(source: Any) -> bool:
    """True for a mapping of edge types to sources."""
    return hasattr(source, "items") and hasattr(source, "keys")


def edge_type_of(key: Any) -> tuple[str, str, str]:
    """An edge type as a tuple of three names; ValueError for anything else."""
    if isinstance(key, tuple) and len(key) == 3 and all(isinstance(each, str) for each in key):
        return key
    expected = "edge types (source, relation, destination)"
    raise ValueError(f"source: expected a mapping of {expected}, got {describe(key)}")


def _folders(path: str) -> Iterator[tuple[str, list[str]]]:
    """Folders that are not hidden, each with the names of its files."""
    for folder, below, names in os.walk(path):
        below[:] = [name for name in below if not name.startswith(_HIDDEN)]
        yield folder, names


def _others(folder: str) -> str:
    names: Sequence[str] = sorted(each.name for each in Path(folder).iterdir())[:3]
    return f"; it has {', '.join(names)}, ..." if names else ""
