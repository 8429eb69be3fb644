"""Rows of all nodes that a layer reads or writes: tensors, features, mapped files."""

from __future__ import annotations

import math
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from pygsampler._arrays.tensors import as_tensor
from pygsampler._engine.checks import describe
from pygsampler._features.features import Features

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "NodeTable",
    "NodeTableGroup",
    "Output",
    "map_file",
    "tensor_of_array",
]


def tensor_of_array(array: Any) -> Tensor:
    """Returns a NumPy array as a tensor on its memory, also where nobody may write to it."""
    with warnings.catch_warnings():
        # Nothing here writes to what a layer reads.
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(array)


def _tensor_of(value: Any) -> Tensor:
    """Returns an array as a tensor, on its memory if torch takes that."""
    try:
        import numpy
    except ImportError:
        return as_tensor(value)
    if not isinstance(value, numpy.ndarray):
        return as_tensor(value)
    # Torch has no strides that go backwards, and no other order of bytes.
    native = value.astype(value.dtype.newbyteorder("="), copy=False)
    backwards = any(each < 0 for each in native.strides)
    return tensor_of_array(native.copy() if backwards else native)


def _moved(tensor: Tensor, device: torch.device) -> Tensor:
    """Returns rows on a device, where work in its current stream may use them."""
    # A CPU would read them while they come.
    return tensor.to(device, non_blocking=device.type == "cuda")


class NodeTable:
    """Rows of all nodes, shape [N, ...]: a tensor in any memory, or ``Features``."""

    def __init__(self, values: Tensor | Features) -> None:
        self.features = values if isinstance(values, Features) else None
        self.values = None if isinstance(values, Features) else values
        # True for memory that may be a file's, where a write would end the process.
        self.read_only = False

    @classmethod
    def of_input(cls, value: Any, where: str, num_rows: int) -> NodeTable:
        """Returns the rows that a caller gave: an array, ``Features``, or a path of a .npy file.

        Raises TypeError or ValueError unless there is a row for each of ``num_rows`` nodes.
        """
        if isinstance(value, (str, os.PathLike)):
            import numpy

            value = numpy.load(Path(value), mmap_mode="r", allow_pickle=False)
        if isinstance(value, Features):
            stays = value._where() >= 0 or value.stored_dtype != value.dtype
            table = cls(value) if stays else cls(value._read_all())
        elif isinstance(value, torch.Tensor):
            if value.layout != torch.strided:
                raise TypeError(
                    f"{where}: expected a dense tensor, got {value.layout}; use x.to_dense()"
                )
            table = cls(value.detach().contiguous())
        else:
            try:
                table = cls(_tensor_of(value).contiguous())
            except (TypeError, ValueError, RuntimeError):
                raise TypeError(
                    f"{where}: expected a tensor, an array, Features or the path of a .npy file "
                    f"with a row for each of {num_rows} nodes, got {describe(value)}"
                ) from None
        flags = getattr(value, "flags", None)
        table.read_only = isinstance(value, Features) or not getattr(flags, "writeable", True)
        shape = table.shape
        if not shape or shape[0] != num_rows:
            raise ValueError(
                f"{where}: expected a row for each of {num_rows} nodes, got shape {tuple(shape)}"
            )
        return table

    @property
    def tensor(self) -> Tensor:
        """The rows of a layer, which are a tensor."""
        assert self.values is not None
        return self.values

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, [N, ...]."""
        return tuple(self.features.shape if self.values is None else self.values.shape)  # type: ignore[union-attr]

    @property
    def device(self) -> torch.device:
        """The device that holds the rows; the CPU for rows that are pinned there."""
        if self.values is not None:
            return self.values.device
        assert self.features is not None
        return torch.device("cpu" if self.features.pinned else self.features.device)

    @property
    def nbytes(self) -> int:
        """The size of all rows in bytes."""
        if self.values is not None:
            return self.values.numel() * self.values.element_size()
        assert self.features is not None
        return self.features.nbytes

    @property
    def width(self) -> int:
        """The number of values of a row."""
        return math.prod(self.shape[1:])

    def read_range(self, first: int, last: int, device: torch.device) -> Tensor:
        """Returns the rows of a range of nodes, on a device."""
        if self.values is not None:
            return _moved(self.values[first:last], device)
        ids = torch.arange(first, last, device=self._reader())
        return self.gather(ids, device)

    def gather(self, ids: Tensor, device: torch.device) -> Tensor:
        """Returns the rows of some nodes, on a device."""
        if self.values is not None:
            if self.values.device == device and self.values.is_cuda:
                return self.values.index_select(0, ids.to(device))
            rows: Tensor = Features.from_tensor(self.values)[ids.to(self.values.device)]
            # Page-locked copies leave while the next range is gathered.
            rows = rows.pin_memory() if device.type == "cuda" and not rows.is_cuda else rows
            return _moved(rows, device)
        assert self.features is not None
        return _moved(self.features[ids.to(self._reader())], device)

    def read_all(self, device: torch.device) -> Tensor:
        """Returns all rows on a device, without a copy where they are there."""
        if self.values is not None:
            return _moved(self.values, device)
        return self.read_range(0, self.shape[0], device)

    def _reader(self) -> torch.device:
        """The device whose ids ``Features`` take."""
        assert self.features is not None
        place = self.features._where()
        return torch.device("cpu" if place < 0 else f"cuda:{place}")


class NodeTableGroup(NodeTable):
    """Several tables, whose rows of a range are a list of tensors."""

    def __init__(self, tables: list[NodeTable]) -> None:
        super().__init__(tables[0].tensor)
        self._tables = tables

    @property
    def width(self) -> int:
        """The number of values of a row of all tables."""
        return sum(each.width for each in self._tables)

    def read_range(self, first: int, last: int, device: torch.device) -> Any:
        """Returns the rows of a range of nodes of each table, on a device."""
        return [each.read_range(first, last, device) for each in self._tables]


def map_file(path: Path, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Returns a tensor on a file of its values, which is created with room for them."""
    size = math.prod(shape)
    if not size:
        path.touch()
        return torch.empty(shape, dtype=dtype)
    _reserve(path, size * dtype.itemsize)
    return torch.from_file(str(path), shared=True, size=size, dtype=dtype).view(shape)


def _reserve(path: Path, size: int) -> None:
    """Gives a file its size on the disk: a page that has no place would end the process."""
    with open(path, "ab") as file:
        os.posix_fallocate(file.fileno(), 0, size)


def _memory_of(tensor: Tensor) -> tuple[int, int]:
    """Returns the addresses of a tensor's first byte, and of the one behind its last."""
    ends = zip(tensor.shape, tensor.stride(), strict=True)
    size = 1 + sum((count - 1) * stride for count, stride in ends) if tensor.numel() else 0
    return tensor.data_ptr(), tensor.data_ptr() + size * tensor.element_size()


class Output:
    """The place of a result: a tensor, an array, or a file that appears once it is complete."""

    def __init__(self, out: Any, where: str, num_rows: int, device: torch.device) -> None:
        """Checks ``out``; a new tensor for None is on ``device``."""
        self.given, self.out, self.where, self.device = out, out, where, device
        self.path = self._partial = None
        if isinstance(out, (str, os.PathLike)):
            self.path = Path(out)
            if self.path.suffix != ".npy" or not self.path.parent.is_dir():
                raise ValueError(
                    f"{where}: expected a file name that ends with .npy in a folder that exists, "
                    f"got {str(out)!r}"
                )
            # The next run overwrites the file of a run that was killed.
            self._partial = self.path.with_name(f".{self.path.stem}.tmp.npy")
        elif out is not None:
            self.out = self._tensor(out)
            if not self.out.dim() or self.out.shape[0] != num_rows:
                raise ValueError(
                    f"{where}: expected a row for each of {num_rows} nodes, got shape "
                    f"{tuple(self.out.shape)}"
                )

    def _tensor(self, out: Any) -> Tensor:
        if isinstance(out, torch.Tensor):
            if out.requires_grad:
                raise ValueError(f"{self.where}: expected no requires_grad, got True")
            return out
        flags = getattr(out, "flags", None)
        if type(out).__module__.partition(".")[0] != "numpy" or flags is None:
            raise TypeError(
                f"{self.where}: expected None, a tensor, a NumPy array or the path of a .npy file, "
                f"got {describe(out)}"
            )
        if not flags.writeable:
            raise ValueError(f"{self.where}: expected an array to write to, got a read-only one")
        try:
            return torch.from_numpy(out)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{self.where}: expected an array that torch takes: {error}") from None

    def overlaps(self, table: NodeTable) -> bool:
        """True if results may overwrite rows of a table."""
        if not isinstance(self.out, torch.Tensor) or table.values is None:
            return False
        first, last = _memory_of(self.out)
        begin, end = _memory_of(table.values)
        return self.out.device == table.device and max(first, begin) < min(last, end)

    def allocate(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """Returns the tensor to write rows of this shape to."""
        if self._partial is not None:
            import numpy

            name = str(dtype).removeprefix("torch.")
            if not hasattr(numpy, name):
                raise TypeError(
                    f"{self.where}: expected a dtype that a .npy file has, got {dtype} from the "
                    "model; give a tensor, whose dtype the result takes"
                )
            mapped = numpy.lib.format.open_memmap(
                self._partial, mode="w+", dtype=getattr(numpy, name), shape=shape
            )
            _reserve(self._partial, self._partial.stat().st_size)
            return torch.from_numpy(mapped)
        if self.out is None:
            return torch.empty(shape, dtype=dtype, device=self.device)
        if tuple(self.out.shape) != shape:
            raise ValueError(
                f"{self.where}: expected shape {shape}, which the model gives, got "
                f"{tuple(self.out.shape)}"
            )
        return self.out  # type: ignore[no-any-return]

    def put(self, tensor: Any) -> Any:
        """Writes a model's rows, and returns the result for the caller."""
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"model: expected a tensor from the model, got {describe(tensor)}")
        if self.given is None:
            return tensor.to(self.device)
        return self.finish(self.allocate(tuple(tensor.shape), tensor.dtype).copy_(tensor))

    def finish(self, tensor: Tensor) -> Any:
        """Returns the result for the caller: the tensor, the array, or the path."""
        if self._partial is None or self.path is None:
            return tensor if self.given is None else self.given
        with open(self._partial, "rb") as written:
            os.fsync(written.fileno())
        os.replace(self._partial, self.path)
        return self.path

    def abandon(self) -> None:
        """Removes an incomplete file."""
        if self._partial is not None:
            self._partial.unlink(missing_ok=True)
