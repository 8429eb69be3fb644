"""``HasFeatures``: batches and blocks with rows of features attached."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch

_NONE: Mapping[str, Any] = MappingProxyType({})


class HasFeatures:
    """Rows of features by name, which a loader read for a batch or a block in torch tensors."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> torch.Tensor: ...

    else:

        def __getattr__(self, name: str) -> Any:
            made = getattr(type(self), name, None)
            if hasattr(made, "__get__"):
                # The property raised: its own message comes again.
                return made.__get__(self, type(self))
            kind = type(self).__name__
            if name.startswith("_"):
                raise AttributeError(f"{kind!r} object has no attribute {name!r}")
            rows = ", ".join(self.features) or "no rows of features"
            raise AttributeError(
                f"{name}: expected an attribute of {kind}, which has {rows}, got {name!r}; "
                f"a loader reads rows for {self._rows_by(name)}"
            )

    def _rows_by(self, name: str) -> str:
        """The option of a loader that puts rows of that name here."""
        return "labels=..." if name == "y" else f"features={{{name!r}: ...}}"

    @property
    def features(self) -> Mapping[str, torch.Tensor]:
        """The features that a loader was asked for; each is an attribute too."""
        found: Mapping[str, torch.Tensor] = self.__dict__.get("_features", _NONE)
        return found

    def _attach(self, name: str, feature_rows: Any, node_type: str | None = None) -> None:
        """Sets rows of features; with ``node_type`` these are the rows of that type alone."""
        known = self.__dict__
        features = known.setdefault("_features", {})
        if node_type is not None:
            feature_rows = {**features.get(name, {}), node_type: feature_rows}
        features[name] = known[name] = feature_rows

    def __setstate__(self, features: Mapping[str, torch.Tensor]) -> None:
        for name, rows in features.items():
            self._attach(name, rows)
