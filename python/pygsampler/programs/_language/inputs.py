"""``InputContent``: what an input of a program is, from one batch to the next."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pygsampler._engine.checks import describe

if TYPE_CHECKING:
    import numpy as np


class InputContent(NamedTuple):
    """The numbers of a tensor, as float32, in C order."""

    shape: tuple[int, ...]
    numbers: bytes

    @classmethod
    def from_value(cls, name: str, value: Any) -> InputContent:
        """Returns the content of an array of NumPy or torch; an error names the input."""
        import numpy as np

        if hasattr(value, "detach"):
            value = value.detach().cpu()
            if value.is_floating_point():
                # NumPy has no bfloat16.
                value = value.float()
            value = value.numpy()
        elif not isinstance(value, np.ndarray):
            value = np.from_dlpack(value)
        if value.dtype.kind != "f":
            raise TypeError(f"{name}: expected a tensor of floats, got one of {value.dtype}")
        if value.ndim not in (1, 2) or value.size == 0:
            raise ValueError(
                f"{name}: expected a tensor of 1 or 2 dimensions with numbers in it, got shape "
                f"{value.shape}"
            )
        return cls(value.shape, np.ascontiguousarray(value, "<f4").tobytes())

    def array(self) -> np.ndarray[Any, Any]:
        """A copy."""
        import numpy as np

        flat: np.ndarray[Any, Any] = np.frombuffer(self.numbers, "<f4").copy()
        return flat.reshape(self.shape)


# Before the name of an input stands this where it is an array of the graph that is sampled.
_PREFIX = "input "


def input_array(name: str) -> str:
    """Returns the name of the graph's array that has the content of an input for each node."""
    return f"{_PREFIX}{name}"


def input_of(array: str) -> str | None:
    """Returns the name of the input whose content an array of the graph has; None of others."""
    return array.removeprefix(_PREFIX) if array.startswith(_PREFIX) else None


def of_nodes(nodes: Iterable[tuple[str, tuple[int, ...], Mapping[str, Any]]]) -> dict[str, None]:
    """Returns the names of the inputs that a trace's nodes read as arrays of the graph."""
    arrays = (str(attributes["name"]) for _, _, attributes in nodes if "name" in attributes)
    return {name: None for name in map(input_of, arrays) if name is not None}


def is_tensor(value: Any) -> bool:
    """True if a value is an input, and no constant."""
    return bool(getattr(value, "ndim", 0)) and hasattr(value, "__dlpack__")


def as_constant(value: Any) -> Any:
    """A list of the numbers of a vector of integers, which is no input; anything else as it is."""
    whole = ("int", "uint", "bool", "torch.int", "torch.uint", "torch.bool")
    if is_tensor(value) and value.ndim == 1 and str(getattr(value, "dtype", "")).startswith(whole):
        return value.tolist()
    return value


def input_texts(contents: Mapping[str, InputContent]) -> list[str]:
    """Returns texts as the engine reads inputs: of each the name, the shape and the numbers."""
    found = []
    for name, content in contents.items():
        numbers = base64.b64encode(content.numbers).decode()
        found += [name, ",".join(map(str, content.shape)), numbers]
    return found


def contents(fields: Sequence[str]) -> dict[str, InputContent]:
    """The contents that such texts are of."""
    return {
        name: InputContent(tuple(map(int, shape.split(","))), base64.b64decode(numbers))
        for name, shape, numbers in zip(fields[::3], fields[1::3], fields[2::3], strict=True)
    }


def checked(
    contents: Mapping[str, InputContent], updates: Mapping[str, Any], who: str
) -> dict[str, InputContent]:
    """Returns new contents of some inputs, of the shapes that they have; ``who`` has them."""
    new = {}
    for name, value in updates.items():
        if name not in contents:
            have = ", ".join(contents) or "none"
            raise TypeError(f"{who}.update: {name}: expected one of its inputs ({have})")
        if not is_tensor(value):
            raise TypeError(f"{who}.update: {name}: expected a tensor, got {describe(value)}")
        content = InputContent.from_value(f"{who}.update: {name}", value)
        if content.shape != contents[name].shape:
            raise ValueError(
                f"{who}.update: {name}: expected shape {contents[name].shape}, got {content.shape}"
            )
        new[name] = content
    return new


def learned(
    contents: Mapping[str, InputContent], tensors: Mapping[str, Any], who: str
) -> dict[str, Any]:
    """Returns torch tensors of floats by the names of inputs, checked; ``who`` has the inputs."""
    if not isinstance(tensors, Mapping) or not tensors:
        raise TypeError(f"{who}.recompute: expected tensors by name, got {describe(tensors)}")
    for name, value in tensors.items():
        if name not in contents:
            have = ", ".join(contents) or "none"
            raise TypeError(f"{who}.recompute: {name}: expected one of its inputs ({have})")
        if not hasattr(value, "requires_grad") or not value.is_floating_point():
            raise TypeError(
                f"{who}.recompute: {name}: expected a torch tensor of floats, got {describe(value)}"
            )
        if tuple(value.shape) != contents[name].shape:
            raise ValueError(
                f"{who}.recompute: {name}: expected shape {contents[name].shape}, got "
                f"{tuple(value.shape)}"
            )
    dtypes = {value.dtype for value in tensors.values()}
    if len(dtypes) > 1:
        found = ", ".join(sorted(map(str, dtypes)))
        raise TypeError(f"{who}.recompute: expected tensors of one dtype, got {found}")
    return dict(tensors)
