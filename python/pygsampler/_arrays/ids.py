"""Turns what a caller passes into an address and a length, without a copy where that can be.

Taken, in this order: our own arrays, torch tensors, NumPy arrays, anything with the buffer
protocol, Arrow's PyCapsule interface, DLPack, ``__cuda_array_interface__`` or ``__array__``, and
sequences of Python integers. Only one-dimensional signed 32 or 64 bit integers are ids; nothing
else is converted, since a silent cast of float or unsigned ids hides mistakes. Arrays that are not
contiguous are copied with a UserWarning. Arrays on a CUDA device are taken where the caller says
so with ``near``, and never copied to the host in silence.
"""

from __future__ import annotations

import json
import sys
import warnings
from array import array
from collections.abc import Iterable, Mapping, Sequence, Set, Sized
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from pygsampler._arrays import devices, dlpack
from pygsampler._arrays.dtypes import ArrayRegion
from pygsampler._engine import library
from pygsampler._engine import memory as memories
from pygsampler._engine.checks import describe, index

if TYPE_CHECKING:
    import torch

_EXPECTED = "a one-dimensional array of int32 or int64 in CPU memory"
# A range can claim any length; past this one the memory for its integers would hang the machine.
_LONGEST_SEQUENCE = 1 << 31
_BUFFER_KINDS = "ilqn"
# For ``near``: on whichever CUDA device an array is, or on the CPU.
ANYWHERE = -2


class IdView(NamedTuple):
    """Signed integers in memory: their address, number, width and owner.

    ``source`` is the object that pickling should store: the caller's object when it pickles well by
    itself (a torch tensor then travels through shared memory), else None. ``device`` is -1, or the
    index of the CUDA device that the address is of; then ``stream`` is the CUstream in which the
    values become ready, unless ``devices.current_stream`` already waits for them. ``known`` says
    that torch has allocated it there, so that the driver need not be asked what the address is.
    """

    address: int
    length: int
    bits: int
    readonly: bool
    owner: object
    source: object | None
    device: int = devices.CPU
    stream: int | None = None
    known: bool = False

    def on_device(self) -> int:
        """The device as the engine takes it: 0 the CPU, 1 a device, 2 a device and ``known``."""
        return 0 if self.device < 0 else 1 + self.known

    def part(self, start: int, end: int) -> IdView:
        """Returns the ids from ``start`` on and before ``end``, which are in ``[0, length]``."""
        address = self.address + start * self.bits // 8
        rest = self.readonly, self.owner, None, self.device, self.stream, self.known
        return IdView(address, end - start, self.bits, *rest)


class HasIdView:
    """An array of ours, which says itself where its values are."""

    __slots__ = ()

    # -1, or the index of the CUDA device.
    _device: int

    def _view(self) -> IdView:
        """Returns the ids; TypeError where there are none."""
        raise NotImplementedError

    def _region(self) -> ArrayRegion:
        """Returns the values of any dtype, on the CPU."""
        raise NotImplementedError


def as_ids(value: Any, where: str, device: int | None = None) -> IdView:
    """A view of ``value``; the error names ``where`` when it is none that can be sampled with.

    A view that was taken before is taken as it is. ``device`` is the device of the graph that the
    array is for, which it may be on too; without it only the CPU will do.
    """
    if isinstance(value, IdView):
        return value
    torch = sys.modules.get("torch")
    # First: each batch of a loop has one, and the tests below take as long as reading it.
    if torch is not None and type(value) is getattr(torch, "Tensor", None):
        return _from_torch(torch, value, where, device)
    if isinstance(value, HasIdView):
        if value._device >= 0:
            _check_device(where, value._device, device)
        return value._view()
    if torch is not None and isinstance(value, getattr(torch, "Tensor", ())):
        return _from_torch(torch, value, where, device)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, getattr(numpy, "ndarray", ())):
        return _from_numpy(value, where)
    if isinstance(value, (list, tuple, range)):
        return _from_sequence(value, where)
    try:
        buffer = memoryview(value)
    except (TypeError, BufferError, ValueError):
        return _from_protocol(value, where, device)
    return _from_buffer(value, buffer, where)


def as_int64(view: IdView) -> IdView:
    """The same integers in 64 bits, copied when they are narrower."""
    if view.bits == 64:
        return view
    wide = array("q", memories.integer_view(view.address, view.length, view.bits))
    return _from_buffer(wide, memoryview(wide), "")


def copy_ids(view: IdView) -> IdView:
    """The same integers, to be read later: of those on the CPU a copy."""
    if view.device >= 0:
        return view
    raw = memories.memory_view(view.address, view.length * view.bits // 8) if view.length else b""
    own = array("i" if view.bits == 32 else "q", bytes(raw))
    return _from_buffer(own, memoryview(own), "")


def ids_on_host(view: IdView) -> IdView:
    """The same integers on the CPU, copied when they are on a device."""
    if view.device < 0 or not view.length:
        return view._replace(device=devices.CPU, stream=None)
    stream = devices.current_stream(view.device) if view.stream is None else view.stream
    size = view.length * view.bits // 8
    memory = memories.new("DeviceDownload", view.device, view.address, size, stream)
    return IdView(memory.data, view.length, view.bits, False, memory, None)


def has_moved(owner: Any, address: int) -> bool:
    """True if a tensor's memory has gone elsewhere.

    torch moves it in place on some calls (``share_memory_``, ``resize_``, sending it to another
    process).
    """
    return is_tensor(owner) and int(owner.data_ptr()) != address


def is_tensor(value: Any) -> bool:
    """True if a value is a tensor of torch's."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def pickle_source(shown: Any, source: Any) -> Any:
    """Returns the object to pickle instead of ``source``, whose values ``shown`` is a view of.

    Sending a tensor to another process moves its memory into a shared file and frees the old one,
    on which an engine may be working. An alias with a separate storage is moved instead; the caller
    holds it, so that several workers share one file.
    """
    if not is_tensor(source):
        return source
    if source.is_shared() or has_moved(source, shown._address):
        return source
    return shown.torch()


def _from_torch(torch: Any, tensor: Any, where: str, graph_device: int | None) -> IdView:
    if tensor.layout is not torch.strided:
        _refuse_type(where, f"a {tensor.layout} tensor")
    device: int = devices.CPU
    if tensor.is_cuda:
        device = tensor.get_device()
        if device != graph_device:
            _check_device(where, device, graph_device)
    elif tensor.device.type != "cpu":
        _refuse_device(where, str(tensor.device), ".cpu()")
    dtype = tensor.dtype
    if dtype is torch.int64:
        bits = 64
    elif dtype is torch.int32:
        bits = 32
    else:
        _refuse_type(where, str(dtype))
    if tensor.dim() != 1:
        _refuse_shape(where, tuple(tensor.shape))
    length: int = tensor.numel()
    if not tensor.is_contiguous():
        tensor = tensor.contiguous()
        _warn_copy(where, length * bits // 8)
    try:
        address: int = tensor.data_ptr()
    except RuntimeError as error:
        raise TypeError(f"{where}: expected {_EXPECTED}, got {error}") from None
    if not address and length:
        _refuse_type(where, f"a {type(tensor).__name__} without memory")
    # The same as IdView(...), without the call of its Python function.
    return tuple.__new__(IdView, (address, length, bits, False, tensor, tensor, device, None, True))


def _from_numpy(values: Any, where: str) -> IdView:
    dtype = values.dtype
    if dtype.kind != "i" or dtype.itemsize not in (4, 8) or not dtype.isnative:
        if dtype.kind == "O" and values.ndim == 1:
            # Integers of pandas stand in such arrays, among others.
            return _from_sequence(values.tolist(), where)
        if dtype.kind in "UT":
            _refuse_names(where, str(dtype))
        _refuse_type(where, str(dtype))
    if hasattr(values, "mask"):
        _refuse_type(where, "a masked array")
    if values.ndim != 1:
        _refuse_shape(where, values.shape)
    flags = values.flags
    if not (flags.c_contiguous and flags.aligned):
        values = values.copy(order="C")
        _warn_copy(where, values.nbytes)
    address = int(values.__array_interface__["data"][0])
    bits = 8 * dtype.itemsize
    return IdView(address, len(values), bits, not flags.writeable, values, values)


def _from_buffer(value: Any, buffer: memoryview, where: str) -> IdView:
    order, kind = buffer.format[:-1], buffer.format[-1:]
    native = ("", "@", "=", "<" if sys.byteorder == "little" else ">")
    if order not in native or kind not in _BUFFER_KINDS or buffer.itemsize not in (4, 8):
        _refuse_type(where, f"{type(value).__name__} of format {buffer.format!r}")
    if buffer.ndim != 1:
        _refuse_shape(where, buffer.shape or ())
    bits = 8 * buffer.itemsize
    length = buffer.shape[0] if buffer.shape else 0
    # Nothing at all may lie anywhere.
    address = memories.address_of(buffer) if length and buffer.contiguous else 0
    if length and (not buffer.contiguous or address % buffer.itemsize):
        # An array's memory is aligned and, while its buffer is held, stays where it is.
        copied = array("i" if bits == 32 else "q")
        copied.frombytes(buffer.tobytes())
        _warn_copy(where, buffer.nbytes)
        value, buffer = copied, memoryview(copied)
        address = memories.address_of(buffer)
    source = value if isinstance(value, array) else None
    return IdView(address, length, bits, buffer.readonly, buffer, source)


def _from_protocol(value: Any, where: str, device: int | None) -> IdView:
    if hasattr(value, "__arrow_c_array__"):
        return _from_arrow(value, where)
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        return _from_dlpack(value, where, device)
    if hasattr(value, "__cuda_array_interface__"):
        if device is None:
            _refuse_device(where, "a CUDA device", "copy it to the CPU")
        return _from_cuda(value, where, device)
    if hasattr(value, "__array__"):
        converted = value.__array__()
        numpy = sys.modules.get("numpy")
        if numpy is None or not isinstance(converted, numpy.ndarray):
            _refuse_type(where, describe(value))
        return _from_numpy(converted, where)
    return _from_sequence(value, where)


def _from_arrow(value: Any, where: str) -> IdView:
    try:
        schema, values = value.__arrow_c_array__()
        found = json.loads(
            library.call(
                "ArrowImport",
                dlpack.capsule_pointer(schema, b"arrow_schema"),
                dlpack.capsule_pointer(values, b"arrow_array"),
            )
        )
    except (TypeError, ValueError) as error:
        if "string" in str(getattr(value, "type", "")):
            _refuse_names(where, f"Arrow data ({value.type})")
        raise TypeError(f"{where}: expected {_EXPECTED}, got Arrow data: {error}") from None
    if found["null_count"]:
        raise ValueError(f"{where}: expected no nulls, got {found['null_count']}")
    owner = (schema, values)
    source = value if type(value).__module__.partition(".")[0] == "pyarrow" else None
    return IdView(found["data"], found["length"], found["bits"], True, owner, source)


def _from_dlpack(value: Any, where: str, graph_device: int | None = None) -> IdView:
    device = devices.CPU
    try:
        kind, number = value.__dlpack_device__()
        if int(kind) == devices.DL_CUDA and graph_device is not None:
            device = int(number)
            _check_device(where, device, graph_device)
        elif int(kind) not in dlpack.CPU_DEVICES:
            name = dlpack.device_name(int(kind), int(number))
            _refuse_device(where, name, "copy it to the CPU")
        tensor = dlpack.borrow(value, device)
    except (BufferError, TypeError, AttributeError, RuntimeError) as error:
        text = f"{where}: expected {_EXPECTED}, got {type(value).__name__}: {error}"
        raise TypeError(text) from error
    if not tensor.signed or tensor.bits not in (32, 64) or tensor.lanes != 1:
        _refuse_type(where, tensor.type_name)
    if len(tensor.shape) != 1:
        _refuse_shape(where, tensor.shape)
    length, bits = tensor.shape[0], tensor.bits
    stride = tensor.strides[0] if tensor.strides else 1
    _check_layout(where, length, stride, tensor.address, bits)
    return IdView(tensor.address, length, bits, tensor.readonly, tensor.capsule, None, device)


def _from_cuda(value: Any, where: str, graph_device: int) -> IdView:
    """Returns what ``__cuda_array_interface__`` describes; it has no word for the device."""
    try:
        interface = value.__cuda_array_interface__
        typestr, shape = str(interface["typestr"]), tuple(map(int, interface["shape"]))
        address, readonly = interface["data"]
        address, stream = int(address), interface.get("stream")
        strides = interface.get("strides")
        masked = interface.get("mask") is not None
        stream = None if stream is None else int(stream)
        stride = int(strides[0]) if strides else None
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        text = f"{where}: expected {_EXPECTED}, got {type(value).__name__} with a broken "
        raise TypeError(f"{text}__cuda_array_interface__: {error!r}") from None
    device = getattr(getattr(value, "device", None), "id", None)
    device = devices.parse("cuda" if device is None else int(device))
    _check_device(where, device, graph_device)
    if typestr not in ("<i4", "<i8"):
        _refuse_type(where, typestr)
    if masked:
        _refuse_type(where, "a masked array")
    if len(shape) != 1:
        _refuse_shape(where, shape)
    size = int(typestr[2])
    _check_layout(where, shape[0], 1 if stride is None else stride // size, address, 8 * size)
    return IdView(address, shape[0], 8 * size, bool(readonly), value, None, device, stream)


def _check_layout(where: str, length: int, stride: int, address: int, bits: int) -> None:
    if stride != 1 and length > 1:
        raise ValueError(f"{where}: expected a contiguous array, got a stride of {stride} elements")
    if address % (bits // 8):
        raise ValueError(f"{where}: expected aligned memory, got address {address:#x}")


def _from_sequence(value: Any, where: str) -> IdView:
    if isinstance(value, (str, bytes, bytearray, Mapping, Set)) or not (
        isinstance(value, Sized) and isinstance(value, Iterable)
    ):
        hint = "; list(...) makes a sequence" if hasattr(value, "__iter__") else ""
        text = f"{where}: expected {_EXPECTED} or a sequence of int, got {describe(value)}{hint}"
        raise TypeError(text)
    try:
        length = len(value)
    except OverflowError:
        # A range may be longer than len() can say.
        length = sys.maxsize
    if length > _LONGEST_SEQUENCE:
        raise ValueError(
            f"{where}: expected an array for so many values, got {describe(value)} of Python ints"
        )
    items: Sequence[Any]
    if isinstance(value, (list, tuple, range)):
        items = value
    else:
        items = list(islice(value, length))
    if not isinstance(items, range) and set(map(type, items)) - {int}:
        items = [_element(item, where, i) for i, item in enumerate(items)]
    try:
        values = array("q", items)
    except OverflowError:
        place = next(i for i, item in enumerate(items) if not -(1 << 63) <= item < 1 << 63)
        text = f"{where}[{place}]: expected an integer of 64 bits, got {describe(items[place])}"
        raise IndexError(text) from None
    return _from_buffer(values, memoryview(values), where)


def _element(item: Any, where: str, place: int) -> int:
    try:
        return index(item)
    except TypeError:
        if isinstance(item, str):
            _refuse_names(f"{where}[{place}]", describe(item), "an integer")
        text = f"{where}[{place}]: expected an integer, got {describe(item)}"
        raise TypeError(text) from None


# The ways to get ids from arrays that are often passed in their place, by the names of the dtypes.
_REMEDIES = {
    "bool": "mask.nonzero()[0] gives the ids that a mask selects",
    "torch.bool": "mask.nonzero().squeeze(1) gives the ids that a mask selects",
    **dict.fromkeys(("int8", "int16", "uint8", "uint16", "uint32"), '.astype("int64") makes one'),
    **dict.fromkeys(("torch.int8", "torch.int16", "torch.uint8"), ".long() makes one"),
}


def _refuse_names(where: str, got: str, expected: str = _EXPECTED) -> NoReturn:
    remedy = "graph.index_of(names) gives the ids of nodes by name"
    raise TypeError(f"{where}: expected {expected}, got {got}; {remedy}")


def _refuse_type(where: str, got: str) -> NoReturn:
    remedy = f"; {_REMEDIES[got]}" if got in _REMEDIES else ""
    raise TypeError(f"{where}: expected {_EXPECTED}, got {got}{remedy}")


def _refuse_shape(where: str, shape: tuple[int, ...]) -> NoReturn:
    raise ValueError(f"{where}: expected {_EXPECTED}, got shape {tuple(shape)}")


def _refuse_device(where: str, device: str, remedy: str) -> NoReturn:
    raise ValueError(f"{where}: expected {_EXPECTED}, got one on {device}; {remedy} first")


def _check_device(where: str, device: int, graph_device: int | None) -> None:
    """Refuses an array on a CUDA device, unless the graph that it is for is there too."""
    if graph_device in (device, ANYWHERE):
        return
    name = devices.name(device)
    if graph_device is None:
        _refuse_device(where, name, ".cpu()")
    if graph_device < 0:
        raise ValueError(
            f"{where}: expected an array on the CPU, as the graph is, got one on {name}; "
            f'copy it to the CPU, or sample graph.to("{name}")'
        )
    raise ValueError(
        f"{where}: expected an array on the CPU or on {devices.name(graph_device)}, as the graph "
        f"is, got one on {name}"
    )


def _warn_copy(where: str, size: int) -> None:
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("pygsampler."):
        frame, level = frame.f_back, level + 1
    text = f"{where}: not contiguous, so {size} bytes were copied; pass a contiguous array"
    warnings.warn(text, UserWarning, stacklevel=level)


def check_node_ids(ids: torch.Tensor, where: str, num_nodes: int) -> None:
    """Raises IndexError for the first of ``ids``, shape [n], that is not in ``[0, num_nodes)``."""
    if not ids.numel():
        return
    low, high = ids.aminmax()
    if int(low) < 0 or int(high) >= num_nodes:
        at = int(((ids < 0) | (ids >= num_nodes)).nonzero()[0])
        raise IndexError(f"{where}[{at}]: expected a node in [0, {num_nodes}), got {int(ids[at])}")
