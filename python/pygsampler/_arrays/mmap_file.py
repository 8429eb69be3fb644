"""``MappedFile``: a graph file that is mapped into memory."""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Callable
from typing import Any

from pygsampler._engine import library, memory

# The size in bytes and the checksum of the header, which contains the checksums of all sections:
# they tell two files of one name apart.
Identity = tuple[int, int]

# The first bytes of a graph file.
MAGIC = b"\x93PGS\r\n\x1a\n"

# The sections that are the graph itself.
CSC = ("indptr", "indices", "edge_ids")

# So many bytes are summed between two looks at whether Ctrl-C was pressed.
_CHUNK = 64 << 20
# Not in the module before Python 3.13.
_MAP_NORESERVE = 0x4000


class MappedFile:
    """A mapped graph file: the arrays on it have this as their owner, and hold the mapping.

    The mapping does not change when another file takes the name. The file must not be truncated:
    see docs/developer/file-format.md.
    """

    __slots__ = (
        "__weakref__",
        "_private",
        "_view",
        "address",
        "header",
        "identity",
        "part",
        "path",
        "private",
    )

    def __init__(self, path: str) -> None:
        # The arguments of ``within``; empty for the whole file.
        self.part: tuple[str, int] | tuple[()] = ()
        # Absolute: another process may have another working directory.
        self.path = os.path.abspath(path)
        # Opening a pipe would block.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            shown = path.encode(errors="backslashreplace").decode()
            self.header: dict[str, Any] = json.loads(
                library.call("GraphFileHeader", descriptor, shown)
            )
            size = self.header["bytes"]
            try:
                pages = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
            except OSError as error:
                raise OSError(error.errno, error.strerror, path) from None
            # A second mapping, for torch, which has no read-only tensors: where somebody writes,
            # the page is copied, and the file stays as it is.
            self._private = self._copied_when_written(descriptor, size)
        finally:
            os.close(descriptor)
        self.identity: Identity = (size, self.header["checksum"])
        self._view = memoryview(pages)
        self.address = memory.address_of(self._view)
        # The address of the second mapping; 0 if there is none.
        self.private = 0 if self._private is None else memory.address_of(self._private)

    def _copied_when_written(self, descriptor: int, size: int) -> memoryview | None:
        if all(section["name"].rpartition(".")[2] in CSC for section in self.header["sections"]):
            return None
        flags, prot = mmap.MAP_PRIVATE | _MAP_NORESERVE, mmap.PROT_READ | mmap.PROT_WRITE
        try:
            return memoryview(mmap.mmap(descriptor, size, flags=flags, prot=prot))
        except OSError:
            return None

    def within(self, prefix: str, num_nodes: int) -> MappedFile:
        """The part of a file that are the sections whose names begin so, by the rest of these."""
        part = object.__new__(MappedFile)
        for name in ("path", "identity", "address", "private", "_view", "_private"):
            setattr(part, name, getattr(self, name))
        sections = [
            {**section, "name": section["name"].removeprefix(prefix)}
            for section in self.header["sections"]
            if section["name"].startswith(prefix)
        ]
        part.header = {"num_nodes": num_nodes, "sections": sections}
        part.part = prefix, num_nodes
        return part

    @classmethod
    def reopened(cls, path: str, identity: Identity) -> MappedFile:
        """The file that another process has open; ValueError where the name is another file's."""
        pages = cls(path)
        if pages.identity != identity:
            raise ValueError(
                f"{path}: expected the graph file that was open before ({_text(identity)}), "
                f"got another one of that name ({_text(pages.identity)})"
            )
        return pages

    def verify(self, report: Any) -> None:
        """Compares the checksum of each section; ``report`` is called with bytes that were read.

        ValueError for the first section that differs.
        """
        for section in self.header["sections"]:
            total = checksum(self.address + section["offset"], section["bytes"], report)
            if total != section["checksum"]:
                raise ValueError(
                    f"{self.path}: section {section['name']!r}: expected the checksum "
                    f"{section['checksum']:08x}, got {total:08x}: the file is damaged"
                )


def checksum(address: int, size: int, report: Callable[[int], object] | None = None) -> int:
    """The CRC-32C of bytes in memory; ``report`` is called with the number of each part's."""
    total: int = 0
    for at in range(0, size, _CHUNK):
        part = min(_CHUNK, size - at)
        total = library.call("GraphFileChecksum", total, address + at, part)
        if report is not None:
            report(part)
    return total


def _text(identity: Identity) -> str:
    return f"{identity[0]} bytes, header {identity[1]:08x}"
