"""``SeedLabels``: labels that belong to the seeds of a loader, not to their nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from pygsampler._loader.seeds import label_tensor, to_device
from pygsampler._loader.static_links import copy_rows, padding_label
from pygsampler._sampling import static_buffers

if TYPE_CHECKING:
    from pygsampler._loader.seeds import HeteroSeeds

__all__ = ["SeedLabels", "StaticSeedLabels"]

# The attribute of a batch, as of labels by node.
_NAME = "y"


class SeedLabels:
    """A row of labels for each seed of a ``DataLoader``; ``rows`` has them by type, on the CPU.

    The type of a homogeneous graph is "". A seed's place is its row among those of its type.
    """

    def __init__(self, labels: Any, types: HeteroSeeds | None, count: int) -> None:
        self._types = types
        self.rows: Mapping[str, torch.Tensor]
        if types is None:
            self.rows = {"": label_tensor(labels, "seed_labels", count)}
        else:
            self.rows = types.labels(labels)

    def places(
        self, order: torch.Tensor, places: torch.Tensor, start: int, end: int
    ) -> Mapping[str, torch.Tensor]:
        """Returns by type the places of some seeds; ``places`` are those among all, in order."""
        if self._types is None:
            return {"": places[start:end]}
        return self._types.part_places(order, places, start, end)

    def attach(self, batch: Any, places: Mapping[str, torch.Tensor], index: int) -> Any:
        """Returns the batch with the labels of its seeds, on the batch's device."""
        for kind, rows in self.rows.items():
            batch._attach(_NAME, to_device(rows[places[kind]], index), kind or None)
        return batch


class StaticSeedLabels:
    """The labels of the seeds of static batches, in memory that stays where it is.

    ``begin`` takes the places of the seeds of each batch of an epoch, ``put`` copies the labels of
    one batch. Rows that fill a batch up have ``padding_label``.
    """

    def __init__(self, labels: SeedLabels, most: Mapping[str, int]) -> None:
        self._labels, self._most = labels, most
        # On the GPU; and the places of an epoch's seeds, batch by batch.
        self._on_device: dict[str, torch.Tensor] = {}
        self._places: Sequence[Mapping[str, torch.Tensor]] = ()

    def begin(self, draws: Sequence[Mapping[str, torch.Tensor]], device: int) -> None:
        """Takes the places of the seeds of the batches of an epoch, for a device."""
        self._places = draws
        if not self._on_device:
            target = static_buffers.place_of(device)
            for kind, rows in self._labels.rows.items():
                self._on_device[kind] = self._padded(kind, rows[:0]).to(target, copy=True)

    def put(self, step: int) -> None:
        """Copies the labels of a batch of the epoch, after the work in torch's current stream."""
        for kind, rows in self._labels.rows.items():
            copy_rows(self._on_device[kind], self._padded(kind, rows[self._places[step][kind]]))

    def batch(self, minibatch: Any) -> Any:
        """Returns the batch with its labels."""
        for kind, rows in self._on_device.items():
            minibatch._attach(_NAME, rows, kind or None)
        return minibatch

    def _padded(self, kind: str, labels: torch.Tensor) -> torch.Tensor:
        most = self._most[kind]
        room = static_buffers.padded_rows(most) if most else 0
        padded = labels.new_full((room, *labels.shape[1:]), padding_label(labels.dtype))
        padded[: len(labels)] = labels
        return padded

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_on_device": {}, "_places": ()}
