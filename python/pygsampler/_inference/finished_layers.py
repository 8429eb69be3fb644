"""A folder of finished layers, with which a run that was stopped goes on."""

from __future__ import annotations

import hashlib
import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from pygsampler._inference.tables import NodeTable, map_file

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import Tensor

    from pygsampler._inference.ranges import InEdges

__all__ = ["FinishedLayers", "fingerprint"]

_FORMAT = 1
_MANIFEST, _TEMPORARY = "manifest.json", "manifest.tmp"
# The number of rows of a long array, at equal distances, that are part of a fingerprint.
_SAMPLED_ROWS = 512


class FinishedLayers:
    """The rows of the layers that are complete, one file each, and a manifest that names them.

    A file has the values of a tensor, nothing else; the manifest has shape and dtype. A layer is
    in the manifest once its file is complete and on the disk.
    """

    def __init__(self, folder: Any, identity: dict[str, Any]) -> None:
        """Opens a folder, or creates it; ValueError for a folder of another run."""
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._manifest = {"format": _FORMAT, **identity, "settings": {}, "layers": []}
        path = self.folder / _MANIFEST
        if not path.exists():
            # A run that was killed in its first moments leaves a manifest that is not complete.
            if any(each.name != _TEMPORARY for each in self.folder.iterdir()):
                raise ValueError(
                    f"resume: expected an empty folder or one of an earlier run, got {self.folder} "
                    "with other files"
                )
            return
        try:
            found = json.loads(path.read_text())
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise ValueError(
                f"resume: expected an empty folder or one of an earlier run, got {self.folder} "
                f"with another {_MANIFEST}"
            )
        for name, value in {"format": _FORMAT, **identity}.items():
            if found.get(name) != value:
                raise ValueError(
                    f"resume: expected the folder of a run with the same {name}, got {self.folder} "
                    f"with {found.get(name)!r} instead of {value!r}; name another folder"
                )
        self._manifest = found

    @property
    def settings(self) -> dict[str, Any]:
        """Values that shape a run's sums, as the first run wrote them."""
        result: dict[str, Any] = self._manifest["settings"]
        return result

    @property
    def count(self) -> int:
        """The number of layers that are complete."""
        return len(self._manifest["layers"])

    def keep(self, count: int) -> None:
        """Forgets all layers but a number of the first."""
        del self._manifest["layers"][count:]

    def load(self, number: int, name: str) -> Tensor | None:
        """Returns the rows of a layer, mapped; None if it is not complete."""
        layers = self._manifest["layers"]
        if number >= len(layers):
            return None
        entry = layers[number]
        if entry["name"] != name:
            raise ValueError(
                f"resume: expected the folder of a run whose layer {number} is {name}, got "
                f"{self.folder} with {entry['name']}; name another folder"
            )
        shape, dtype = tuple(entry["shape"]), getattr(torch, entry["dtype"])
        path, size = self._path(number), math.prod(shape) * dtype.itemsize
        if not path.exists() or path.stat().st_size != size:
            raise ValueError(f"resume: expected {path} of {size} bytes, got another file or none")
        return map_file(path, shape, dtype)

    def create(self, number: int, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """Returns room for the rows of a layer that begins now."""
        path = self._path(number)
        path.unlink(missing_ok=True)
        return map_file(path, shape, dtype)

    def complete(self, number: int, name: str, values: Tensor) -> None:
        """Adds a layer whose rows are all written."""
        with open(self._path(number), "rb+") as file:
            os.fsync(file.fileno())
        dtype = str(values.dtype).removeprefix("torch.")
        self._manifest["layers"].append({"name": name, "shape": list(values.shape), "dtype": dtype})
        self.save()

    def save(self) -> None:
        """Writes the manifest, in one step."""
        path, temporary = self.folder / _MANIFEST, self.folder / _TEMPORARY
        with open(temporary, "w") as file:
            json.dump(self._manifest, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)

    def _path(self, number: int) -> Path:
        return self.folder / f"layer{number}.bin"


def fingerprint(
    model: str,
    tensors: Iterable[tuple[str, Tensor]],
    graphs: Iterable[InEdges],
    inputs: list[NodeTable],
) -> dict[str, Any]:
    """Returns what tells one run from another, as a manifest has it.

    All bytes of the model's tensors count; of features and graphs their sizes, and some rows.
    """
    parts = {"model": hashlib.sha256(model.encode()), "features": hashlib.sha256()}
    graph = hashlib.sha256()
    for name, tensor in tensors:
        parts["model"].update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        parts["model"].update(_bytes(tensor.detach()))
    for table in inputs:
        count = table.shape[0]
        sampled = min(count, _SAMPLED_ROWS)
        # Whole numbers: floats of 32 bits round a large last place up to one behind all rows.
        chosen = torch.arange(sampled) * max(count - 1, 0) // max(sampled - 1, 1)
        rows = table.gather(chosen, torch.device("cpu"))
        parts["features"].update(f"{table.shape} {rows.dtype}".encode() + _bytes(rows))
    for csc in graphs:
        graph.update(f"{csc.edge_type} {csc.num_src} {csc.num_dst} {csc.num_edges}".encode())
        for array in (csc.indptr, csc.indices, *csc.edge_data.values()):
            step = max(1, len(array) // _SAMPLED_ROWS)
            graph.update(_bytes(array[::step]))
    found: dict[str, Any] = {name: part.hexdigest() for name, part in parts.items()}
    return {**found, "graph": graph.hexdigest()}


def _bytes(tensor: Tensor) -> bytes:
    dense = tensor if tensor.layout == torch.strided else tensor.to_dense()
    flat = dense.cpu().contiguous().reshape(-1)
    return bytes(flat.view(torch.uint8).numpy()) if flat.numel() else b""
