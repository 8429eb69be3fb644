"""``Visits``: the vertices that a seed's walks have visited most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygsampler._arrays import devices
from pygsampler._batch import layout as at
from pygsampler._core import memories
from pygsampler.array import Array

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from pygsampler._core.memories import Memory

__all__ = ["TorchVisits", "Visits"]


class Visits:
    """For each seed the vertices that its walks have visited most, and how often.

    A row is a seed: the most visited vertex first, and among those with as many visits the one that
    came first, walk after walk. -1 (and 0 visits) stands behind the last. All arrays are views of
    one memory; those of a graph on a GPU are there, complete for every stream.
    """

    __slots__ = ("__weakref__", "_device", "_memory", "_rows", "batch", "epoch")

    epoch: int
    batch: int
    _memory: Memory
    _device: int
    _rows: dict[str, Array]

    def __init__(self) -> None:
        raise TypeError("Visits: made by PinSAGE.sample")

    @classmethod
    def _of(cls, memory: Memory, epoch: int, batch: int) -> Visits:
        made = object.__new__(cls)
        made.epoch, made.batch = epoch, batch
        made._memory, made._device = memory, memory.device
        words = memories.read_int64(memory.header, at.WALK_WORDS)
        made._rows = {}
        seeds = words[at.WALK_NUM_WALKS] // words[at.WALK_PER_SEED]
        for row in at.WALK_ROWS:
            array = Array._of_row(row, words, words, memory.data, memory, memory.device)
            if array is not None and row.name in ("top_nodes", "visits"):
                top = words[at.WALK_NUM_TOP] // max(seeds, 1)
                made._rows[row.name] = array._at(array._address, (seeds, top))
        return made

    def __len__(self) -> int:
        return self.nodes.shape[0]

    @property
    def nodes(self) -> Array:
        """The vertices: shape [seeds, num_neighbors], in the graph's id dtype."""
        return self._rows["top_nodes"]

    @property
    def counts(self) -> Array:
        """How often each was visited: shape [seeds, num_neighbors], int32."""
        return self._rows["visits"]

    @property
    def device(self) -> str:
        """Where the arrays are: ``"cpu"`` or, for one, ``"cuda:0"``."""
        return devices.name(self._device)

    @property
    def num_edges(self) -> int:
        """Places for neighbours of all seeds."""
        return self.nodes._length

    def torch(self) -> TorchVisits:
        """The same in torch tensors, which share the memory."""
        made = TorchVisits(self.nodes.torch(), self.counts.torch())
        made.epoch, made.batch = self.epoch, self.batch
        return made

    def cpu(self) -> tuple[Array, Array]:
        """``nodes`` and ``counts`` on the CPU: themselves, or copies."""
        return self.nodes.cpu(), self.counts.cpu()

    def __repr__(self) -> str:
        where = "" if self._device < 0 else f", device={self.device}"
        seeds, top = self.nodes.shape
        numbers = f"epoch={self.epoch}, batch={self.batch}"
        return f"Visits({seeds}, num_neighbors={top}, {numbers}{where})"


class TorchVisits:
    """``Visits`` in torch tensors, on the device where they are."""

    nodes: torch.Tensor
    """The vertices: shape [seeds, num_neighbors], -1 behind the last."""
    counts: torch.Tensor
    """How often each was visited: shape [seeds, num_neighbors], int32."""
    epoch: int = 0
    batch: int = 0

    def __init__(self, nodes: torch.Tensor, counts: torch.Tensor) -> None:
        self.nodes, self.counts = nodes, counts

    @classmethod
    def _of_region(
        cls, region: torch.Tensor, words: Sequence[int], epoch: int, batch: int
    ) -> TorchVisits:
        import torch

        seeds = words[at.WALK_NUM_WALKS] // words[at.WALK_PER_SEED]
        count, width = words[at.WALK_NUM_TOP], region.element_size()
        shape = seeds, count // max(seeds, 1)
        first = words[at.WALK_TOP_NODES] // width
        narrow = region if width == 4 else region.view(torch.int32)
        visits = words[at.WALK_VISITS] // 4
        made = cls(
            region[first : first + count].view(shape),
            narrow[visits : visits + count].view(shape),
        )
        made.epoch, made.batch = epoch, batch
        return made

    def __len__(self) -> int:
        return int(self.nodes.shape[0])

    @property
    def num_edges(self) -> int:
        """Places for neighbours of all seeds."""
        return self.nodes.numel()

    @property
    def importance(self) -> torch.Tensor:
        """The part of a seed's visits that each vertex has of those that are told: PinSAGE's
        importance pooling (section 3.2). Shape [seeds, num_neighbors], float32; 0 behind the last.
        """
        return self.counts / self.counts.sum(dim=1, keepdim=True).clamp(min=1)

    def coo(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Edges from neighbours to seeds: the vertices, the place of the seed of each, and the
        counts; shape [edges] each, seed after seed."""
        found = self.nodes >= 0
        place = found.nonzero()[:, 0]
        return self.nodes[found], place, self.counts[found]

    def torch(self) -> TorchVisits:
        """Itself."""
        return self

    def __repr__(self) -> str:
        seeds, top = self.nodes.shape
        return (
            f"TorchVisits({seeds}, num_neighbors={top}, epoch={self.epoch}, batch={self.batch}, "
            f"device={str(self.nodes.device)!r})"
        )


def top_visits(rows: torch.Tensor, top: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Of each row of vertices those that stand there most often, and how often.

    ``rows`` is [N, n], -1 where there is none; the results are [N, top], ordered as those of
    ``Visits``.
    """
    import torch

    count, length = rows.shape
    # By row, vertex and place: a stable sort of each row.
    values, places = rows.sort(dim=1, stable=True)
    heads = torch.ones_like(values, dtype=torch.bool)
    heads[:, 1:] = values[:, 1:] != values[:, :-1]
    heads &= values >= 0
    row, column = heads.nonzero().unbind(1)
    ends = torch.full_like(column, length)
    if len(row) > 1:
        same = row[1:] == row[:-1]
        ends[:-1] = torch.where(same, column[1:], ends[:-1])
    visits = ends - column
    first = places[row, column]
    # By row, then more visits, then the place of the first.
    key = (row * (length + 1) + (length - visits)) * (length + 1) + first
    order = key.argsort()
    row, column, visits = row[order], column[order], visits[order]
    rank = torch.arange(len(row), device=rows.device)
    begins = torch.zeros(count + 1, dtype=torch.int64, device=rows.device)
    begins[1:] = torch.bincount(row, minlength=count).cumsum(0)
    rank -= begins[row]
    kept = rank < top
    nodes = torch.full((count, top), -1, dtype=rows.dtype, device=rows.device)
    counts = torch.zeros((count, top), dtype=torch.int32, device=rows.device)
    nodes[row[kept], rank[kept]] = values[row[kept], column[kept]]
    counts[row[kept], rank[kept]] = visits[kept].to(torch.int32)
    return nodes, counts
