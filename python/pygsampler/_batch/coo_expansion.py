"""``Edges``: the edges of batches on a device, one by one."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from pygsampler._arrays import devices
from pygsampler._batch.buffer import edges_of_blocks
from pygsampler._engine.library import call

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

# The kinds: destinations in the ids' width, and sources with destinations in 64 bits.
DESTINATIONS, PAIRS = range(2)
# The most edges that are expanded before they are requested: beyond it a launch costs little
# compared with them, and their memory much.
_MOST_AHEAD = 1 << 20


class CooExpander:
    """Expands the edges of batches that share one tensor ``ids``, several by one launch.

    ``requested_kinds`` has the kinds of arrays that were requested from such batches, by any user:
    several groups of batches may share it. The second request of a kind writes all those kinds,
    also for the batches behind this one, since a loop requests the same kinds of each batch.
    """

    __slots__ = ("_asked", "_batches", "_counts", "_device", "_ids", "_made", "_wide")

    def __init__(
        self, ids: torch.Tensor, device: int, wide: bool, requested_kinds: set[int]
    ) -> None:
        self._ids = ids
        self._device = device
        # True if ids have 64 bits.
        self._wide = wide
        self._asked = requested_kinds
        self._batches: list[tuple[array[int], int]] = []
        # Edges of the blocks of each batch, where they were needed.
        self._counts: dict[int, list[int]] = {}
        # In which stream, the tensor, and where in it a batch begins.
        self._made: dict[tuple[int, int], tuple[int, torch.Tensor, int]] = {}

    def add(self, words: Sequence[int], first: int) -> int:
        """The place of another batch, which begins ``first`` bytes from the start of the tensor."""
        about = words if isinstance(words, array) else array("q", words)
        self._batches.append((about, first))
        return len(self._batches) - 1

    def block_arrays(self, place: int, kind: int) -> list[torch.Tensor]:
        """Returns the arrays of each block of a batch, in torch's current stream.

        Destinations have shape [num_edges], pairs [2, num_edges].
        """
        stream = devices.current_stream(self._device)
        made = self._made
        if kind == DESTINATIONS and self._wide and (place, PAIRS) in made:
            return [pair[1] for pair in self.block_arrays(place, PAIRS)]
        found = made.get((place, kind))
        # Arrays that another stream writes may not be complete yet.
        if found is None or found[0] != stream:
            self._make(place, kind, stream)
            if (place, kind) not in made:
                return self.block_arrays(place, kind)
            found = made[place, kind]
        _, out, start = found
        blocks = []
        for count in self._counts[place]:
            if kind == DESTINATIONS:
                blocks.append(out.as_strided((count,), (1,), start))
                start += count
            else:
                blocks.append(out.as_strided((2, count), (max(count, 1), 1), start))
                start += 2 * count
        return blocks

    def _make(self, place: int, kind: int, stream: int) -> None:
        """Has the engine write what is asked for, and what will be."""
        import torch

        asked, counts, made = self._asked, self._counts, self._made
        kinds, ahead = {kind}, [place]
        counts[place] = self._edges_of(place)
        if kind in asked and (place, kind) not in made:
            kinds = set(asked)
            for other in range(place + 1, len(self._batches)):
                counts[other] = self._edges_of(other)
                ahead.append(other)
            if sum(sum(counts[other]) for other in ahead) > _MOST_AHEAD:
                ahead = [place]
        asked.add(kind)
        if self._wide and PAIRS in kinds:
            # Destinations are a part of them.
            kinds = {PAIRS}
        edges = sum(sum(counts[other]) for other in ahead)
        about: list[int] = []
        data = self._ids.data_ptr()
        for one in kinds:
            if one == DESTINATIONS:
                out, bits, each = self._ids.new_empty(edges), 64 if self._wide else 32, 1
            else:
                out, bits, each = self._ids.new_empty(2 * edges, dtype=torch.int64), 64, 2
            start, to = 0, out.data_ptr()
            for other in ahead:
                words, first = self._batches[other]
                target = to + start * bits // 8
                about += words.buffer_info()[0], data + first, target, bits, int(one == PAIRS)
                made[other, one] = stream, out, start
                start += each * sum(counts[other])
        expansions = array("q", about)
        number = len(about) // 5
        call("DeviceExpand", self._device, number, expansions.buffer_info()[0], stream)

    def _edges_of(self, place: int) -> list[int]:
        return list(edges_of_blocks(self._batches[place][0]))
