"""``Furnished``: batches and blocks with rows beside them."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch

_NONE: Mapping[str, Any] = MappingProxyType({})


class Furnished:
    """Of torch's tensors: rows beside a batch or a block, by name, which a loader read for it."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> torch.Tensor: ...

    @property
    def features(self) -> Mapping[str, torch.Tensor]:
        """Those that a loader was asked for; each is an attribute too."""
        found: Mapping[str, torch.Tensor] = self.__dict__.get("_features", _NONE)
        return found

    def _furnish(self, name: str, rows: Any) -> None:
        # Around the dataclass, which is frozen.
        known = self.__dict__
        known.setdefault("_features", {})[name] = rows
        known[name] = rows

    def __setstate__(self, features: Mapping[str, torch.Tensor]) -> None:
        for name, rows in features.items():
            self._furnish(name, rows)
