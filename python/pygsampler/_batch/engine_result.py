"""``EngineResult``: base class of walks and samples by steps, in the arrays of any library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from pygsampler._arrays import devices
from pygsampler._arrays.array import Array
from pygsampler._batch import layout as at
from pygsampler._batch.buffer import check_signature, copy_to_host, integer_view
from pygsampler._engine import memory as memories
from pygsampler._engine.memory import Memory, from_pickle, to_pickle

if TYPE_CHECKING:
    import torch

    from pygsampler._engine.array_descriptor import ArrayDescriptor

ArrayT = TypeVar("ArrayT")
E = TypeVar("E", bound="EngineResult[Any]")


class EngineResult(Generic[ArrayT]):
    """A result of the engine: words that describe it, and arrays by name.

    An array is read when it is first needed: from a memory of the engine, from a torch tensor, or
    from the array of another result, which has the same arrays for another library.
    """

    _signature: ClassVar[int]
    _num_words: ClassVar[int]
    _descriptors: ClassVar[Mapping[str, ArrayDescriptor]]
    # Who makes such results, and what they are called in errors.
    _makers: ClassVar[str]
    _noun: ClassVar[str]

    epoch: int
    batch: int
    seed: int
    form: str
    """Whose arrays the result has: ``"array"`` (``pygsampler.Array``), ``"torch"`` or ``"numpy"``.
    """
    _words: Sequence[int]
    # The memory of the arrays: a memory of the engine, or a tensor of the dtype of ids.
    _memory: Any = None
    _address: int
    # The device of a memory of the engine; results in torch tensors ask their tensors.
    _device: int = devices.CPU
    _arrays: dict[str, Any]
    # The result whose arrays this one has for another library.
    _base: Any = None

    def __init__(self) -> None:
        raise TypeError(f"{type(self).__name__}: created by {self._makers} only")

    @classmethod
    def _new(cls: type[E], attributes: dict[str, Any]) -> E:
        result = object.__new__(cls)
        result.__dict__ = attributes
        check_signature(result._words[at.SIGNATURE], cls._signature)
        return result

    @classmethod
    def _of_memory(
        cls: type[E],
        memory: Memory | memoryview,
        address: int,
        header: int,
        device: int,
        attributes: dict[str, Any],
    ) -> E:
        words = memories.read_int64(header, cls._num_words)
        attributes |= {"form": "array", "_words": words, "_arrays": {}}
        attributes |= {"_memory": memory, "_address": address, "_device": device}
        return cls._new(attributes)

    @classmethod
    def _of_region(
        cls: type[E], region: torch.Tensor, words: Sequence[int], attributes: dict[str, Any]
    ) -> E:
        """Returns the result that lies in a torch tensor of the dtype of ids."""
        attributes |= {"form": "torch", "_words": words, "_arrays": {}, "_memory": region}
        return cls._new(attributes)

    def _array(self, name: str) -> Any:
        """Returns an array; None if the result does not have it."""
        known = self._arrays
        if name not in known:
            known[name] = self._read(name)
        return known[name]

    def _read(self, name: str) -> Any:
        if self._base is not None:
            array = self._base._array(name)
            return None if array is None else getattr(array, self.form)()
        row, words, memory = self._descriptors[name], self._words, self._memory
        if not words[row.offset]:
            return None
        if self.form == "array":
            flat = Array._of_row(row, words, words, self._address, memory, self._device)
            return self._shaped(name, flat)
        width = words[row.bits] if isinstance(row.bits, int) else 32
        view = integer_view(memory, words[row.offset], words[row.length] + row.more, width)
        return self._shaped(name, view)

    def _shaped(self, name: str, flat: Any) -> Any:
        """Returns an array of one dimension in the shape that the result has it in."""
        return flat

    def _matrix(self, flat: Any, start: int, height: int, width: int) -> Any:
        """Returns a view of two dimensions that begins at an element of a flat array."""
        if self.form == "array":
            return flat._view_at(flat._address + start * flat._bits // 8, (height, width))
        return flat[start : start + height * width].reshape(height, width)

    def _in_form(self, form: str) -> Any:
        """Returns this result in arrays of another library, which share its memory."""
        base = self if self._base is None else self._base
        if self.form == form:
            return self
        if base.form == form:
            return base
        if form == "numpy":
            base._need_cpu(form)
        return self._new({**self.__dict__, "form": form, "_arrays": {}, "_base": base})

    @property
    def device(self) -> Any:
        """The device of all arrays: ``"cpu"`` or ``"cuda:0"``, for tensors a ``torch.device``."""
        if self.form == "torch":
            return self._array("nodes").device
        return devices.name(self._device)

    @property
    def _is_on_device(self) -> bool:
        return self._device >= 0 or (self.form == "torch" and bool(self._array("nodes").is_cuda))

    def cpu(self: E) -> E:
        """Returns this result if it is on the CPU, or a copy of it on the CPU."""
        if not self._is_on_device:
            return self
        if self.form == "torch":
            arrays = self._all_arrays()
            copies = {name: None if a is None else a.cpu() for name, a in arrays.items()}
            return self._new({**self.__dict__, "_arrays": copies, "_base": None})
        words = self._words
        memory = copy_to_host(self._address, words[at.SIZE], words, self._memory, self._device)
        place = memory, memory.data, memory.data, devices.CPU
        return self._of_memory(*place, {**self.__dict__})

    def _all_arrays(self) -> dict[str, Any]:
        return {name: self._array(name) for name in self._descriptors}

    def _need_cpu(self, what: str) -> None:
        if self._is_on_device:
            raise TypeError(
                f"{type(self).__name__}.{what}: expected {self._noun} on the CPU, got some on "
                f"{self.device}; .cpu() copies them"
            )

    def _place(self) -> str:
        """Returns the end of a result's text: library and device, unless they are usual."""
        form = "" if self.form == "array" else f", form={self.form!r}"
        return f"{form}, device={self.device}" if self._is_on_device else form

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        if self.form == "numpy":
            return _in_numpy, (self._base,)
        attributes = {k: v for k, v in self.__dict__.items() if not k.startswith("_")}
        if self.form == "torch":
            attributes |= {"_arrays": self._all_arrays(), "_words": list(self._words)}
            return _from_arrays, (type(self), attributes)
        self._need_cpu("pickle")
        raw = memories.buffer_view(self._address, self._words[at.SIZE], self._memory)
        return _from_memory, (type(self), to_pickle(raw, protocol), attributes)


def _in_numpy(base: Any) -> Any:
    return base._in_form("numpy")


def _from_arrays(kind: type[E], attributes: dict[str, Any]) -> E:
    return kind._new(dict(attributes))


def _from_memory(kind: type[E], values: Any, attributes: dict[str, Any]) -> E:
    buffer, address = from_pickle(values)
    return kind._of_memory(buffer, address, address, devices.CPU, dict(attributes))
