"""Writes a graph file: under a temporary name, which goes when anything goes wrong."""

from __future__ import annotations

import base64
import errno
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pygsampler._arrays.array import Array, as_array
from pygsampler._arrays.mmap_file import CSC
from pygsampler._engine.checks import describe
from pygsampler._engine.handle import SLICE_MS, EngineHandle
from pygsampler._engine.progress import Progress, progress_counter
from pygsampler._graph.file_sections import SectionWriter
from pygsampler._graph.named_arrays import PREFIXES

if TYPE_CHECKING:
    from pygsampler._graph.csc_arrays import CscArrays

# So many bytes are written between two looks at whether Ctrl-C was pressed.
_CHUNK = 16 << 20


def csc_sections(arrays: CscArrays) -> dict[str, Array]:
    """The sections that are a graph."""
    return {
        name: as_array(part, name)
        for name, part in zip(CSC, arrays, strict=False)
        if part is not None
    }


def write_graph_file(
    path: str,
    sections: Mapping[str, Array | SectionWriter],
    num_nodes: int,
    progress: Progress,
    heterogeneous: bool = False,
) -> None:
    """Writes the file and gives it its name once it is complete and on the disk."""
    total = sum(section.nbytes for section in sections.values())
    plan = {
        "path": base64.b64encode(os.fsencode(path)).decode(),
        "num_nodes": num_nodes,
        "typed": heterogeneous,
        "sections": [
            {"name": name, "dtype": section.dtype, "shape": section.shape}
            for name, section in sections.items()
        ],
    }
    writer = _GraphFileWriter()
    try:
        with progress_counter(progress, total, "save") as report:
            writer._create("GraphFileCreate", json.dumps(plan))
            for place, section in enumerate(sections.values()):
                written = 0
                for piece in section.pieces if isinstance(section, SectionWriter) else [section]:
                    for at in range(0, piece.nbytes, _CHUNK):
                        size = min(_CHUNK, piece.nbytes - at)
                        writer._call("GraphFileWrite", place, written, piece._address + at, size)
                        written += size
                        report(size)
            while not writer._call("GraphFileCommit", SLICE_MS):
                pass
    except OSError as error:
        require_folder(path)
        raise OSError(error.errno, error.strerror, path) from None
    finally:
        writer._release()


def require_folder(path: str) -> None:
    """Raises FileNotFoundError where there is no folder for the file."""
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.exists(folder):
        shown = os.path.dirname(path) if not os.path.islink(path) else folder
        raise FileNotFoundError(errno.ENOENT, f"there is no folder {shown!r}", path)


def check_file_arrays(arrays: Any) -> dict[str, Array]:
    """Returns a caller's further arrays of a graph's file, checked; errors name the wrong array."""
    if not isinstance(arrays, Mapping):
        raise TypeError(f"arrays: expected a mapping of names to arrays, got {describe(arrays)}")
    found = {}
    for name, value in arrays.items():
        if not isinstance(name, str):
            raise TypeError(f"arrays: expected names of type str, got {describe(name)}")
        if name in CSC:
            raise ValueError(f"arrays: expected names other than {', '.join(CSC)}, got {name!r}")
        if name.startswith(PREFIXES):
            raise ValueError(
                f"arrays: expected names that do not begin with {' or '.join(PREFIXES)}, got "
                f"{name!r}; graph.with_data gives a graph such arrays"
            )
        parts = getattr(value, "_file_arrays", None)
        if parts is not None:
            # Features, of which quantized ones are several arrays.
            found.update(parts(name))
            continue
        found[name] = as_array(value, f"arrays[{name!r}]")
    return found


class _GraphFileWriter(EngineHandle):
    """A file in the making; its end removes the temporary one, unless it has its name by now."""

    __slots__ = ()

    _close_function: ClassVar[str] = "GraphFileAbort"
