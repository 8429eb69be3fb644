"""Makes torch tensors of whatever callers pass, by the values alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygsampler._arrays.ids import HasIdView
from pygsampler._arrays.interning import is_text

if TYPE_CHECKING:
    import torch


# Says of names where ids or numbers are expected the way out.
_NAMES = "names are no ids; graph.index_of(names) gives the ids of nodes by name"


def as_tensor(value: Any, of_names: str = _NAMES) -> torch.Tensor:
    """``torch.as_tensor`` for more kinds of arrays; for names a TypeError says ``of_names``.

    A pandas Series counts by its values: torch would look up 0, 1, 2, ... in its index. Integers
    that pandas or NumPy have as objects are integers, and several columns become rows.
    """
    import torch

    if isinstance(value, (torch.Tensor, HasIdView)):
        return torch.as_tensor(value)
    if isinstance(value, (list, tuple)) and value and _is_column(value[0]):
        return torch.stack([as_tensor(column, of_names) for column in value])
    try:
        return torch.as_tensor(_of_array(value) if hasattr(value, "__array__") else value)
    except (TypeError, ValueError, RuntimeError):
        columns = [value, *value] if isinstance(value, (list, tuple)) else [value]
        if any(map(is_text, columns)):
            raise TypeError(of_names) from None
        raise


def _is_column(value: Any) -> bool:
    # Arrow's have no number of dimensions.
    return hasattr(value, "__array__") and getattr(value, "ndim", 1) == 1


def _of_array(value: Any) -> Any:
    """A NumPy array that torch takes without a warning, or a list of objects."""
    import numpy as np

    # NumPy would make objects of pandas' integers that may be missing.
    of_pandas = type(value).__module__.partition(".")[0] == "pandas"
    values = np.asarray(value.to_numpy() if of_pandas else value)
    if values.dtype.kind == "O":
        return values.tolist()
    # Torch warns of arrays that must not be written to, as those of pandas and Arrow.
    return values if values.flags.writeable and values.dtype.isnative else values.copy()
