"""``Elsewhere``: rows of values that other processes have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch


class PendingRows(Protocol):
    """Rows on their way."""

    def wait(self) -> torch.Tensor:
        """The rows, waiting until they are there."""

    def done(self) -> bool:
        """True if ``wait()`` would return, or raise, at once."""

    def cancel(self) -> None:
        """Cancels the read."""


class RemoteFeatures(ABC):
    """Rows that a loader takes in the place of features, for batches on the CPU."""

    @abstractmethod
    def __len__(self) -> int:
        """Returns the number of rows."""

    @abstractmethod
    def read_async(self, ids: torch.Tensor) -> PendingRows:
        """Asks for the rows of ids, in their order."""

    @abstractmethod
    def stats(self) -> dict[str, Any]:
        """Returns what was read, as ``Features.stats`` does."""
