"""``DistributedFeatures``: rows of a node array whose parts lie in several processes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import CancelledError
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pygsampler._engine.memory import address_of, buffer_view
from pygsampler._features.remote import RemoteFeatures
from pygsampler.distributed.row_service import RowFetch, RowService
from pygsampler.errors import Error

if TYPE_CHECKING:
    import torch


class DistributedFeatures(RemoteFeatures):
    """The rows of a node array of a partitioned graph: see ``DistributedGraph.features``.

    ``pygsampler.torch.DataLoader(graph, ..., features={"x": graph.features("x")})`` prefetches the
    rows of coming batches. Each row is requested once per batch, from the process that has its
    node.

    Parameters
    ----------
    service : RowService
        The service of the graph.
    name : str
        The name of the array.
    description : object
        The dtype and shape of a row.
    num_nodes : int
        The number of nodes.
    bounds : sequence of int, optional
        The first node of each shard.
    """

    __slots__ = (
        "_bounds",
        "_counts",
        "_dtype",
        "_hot",
        "_hot_rows",
        "_row",
        "_service",
        "_shape",
        "name",
    )

    def __init__(
        self,
        service: RowService,
        name: str,
        description: Any,
        num_nodes: int,
        bounds: Sequence[int] | None = None,
    ) -> None:
        """Not for users: see the class."""
        import torch

        self.name = name
        self._service = service
        self._dtype: torch.dtype = getattr(torch, description["dtype"])
        self._shape = (num_nodes, *description["shape"])
        self._row = self._dtype.itemsize * math.prod(description["shape"])
        # Reads, rows, rows that were kept here, rows of this process's part, and of others.
        self._counts = [0] * 5
        where = service.bounds if bounds is None else bounds
        self._bounds = torch.tensor(where, dtype=torch.int64)
        self._hot = torch.empty(0, dtype=torch.int64)
        self._hot_rows = torch.empty((0, *description["shape"]), dtype=self._dtype)

    def __len__(self) -> int:
        return int(self._shape[0])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole array, ``(num_nodes, ...)``."""
        return self._shape

    @property
    def dtype(self) -> torch.dtype:
        """Torch's dtype of the rows."""
        return self._dtype

    @property
    def cached(self) -> int:
        """The number of rows of other shards that this process has cached."""
        return len(self._hot)

    def cache(self, ids: Any) -> DistributedFeatures:
        """Features that keep the rows of these nodes here, and ask for others alone.

        Nodes that are sampled often pay most: those that most edges lead from.

        Parameters
        ----------
        ids : int32 or int64, shape [n]
            Any nodes; those that occur twice count once. Their rows are asked for now.
        """
        import torch

        about = {"dtype": str(self._dtype).removeprefix("torch."), "shape": self._shape[1:]}
        bounds = self._bounds.tolist()
        other = DistributedFeatures(self._service, self.name, about, len(self), bounds)
        hot = torch.unique(torch.as_tensor(ids).to(torch.int64))
        other._hot_rows = self.read(hot)
        other._hot = hot
        return other

    def read(self, ids: Any) -> torch.Tensor:
        """The rows of ids, shape [len(ids), ...], in their order.

        Parameters
        ----------
        ids : int32 or int64, shape [n]
            Nodes of any part.

        Raises
        ------
        IndexError
            For an id that is no node.
        Error
            Where the exchange has failed.
        """
        import torch

        return self.read_async(torch.as_tensor(ids)).wait()

    def read_async(self, ids: torch.Tensor) -> PendingRemoteRows:
        """Asks for the rows of ids; ``wait()`` of what it returns gives them."""
        import torch

        if ids.dim() != 1 or ids.dtype not in (torch.int32, torch.int64):
            raise TypeError(
                f"ids: expected int32 or int64 of one dimension, got {ids.dtype} of shape "
                f"{tuple(ids.shape)}"
            )
        wanted, inverse = torch.unique(ids.to(torch.int64), return_inverse=True)
        if len(wanted) and not 0 <= int(wanted[0]) <= int(wanted[-1]) < len(self):
            bad = int(wanted[0] if wanted[0] < 0 else wanted[-1])
            raise IndexError(f"ids: expected integers in [0, {len(self)}), got {bad}")
        here = at = None
        if len(self._hot):
            at = torch.searchsorted(self._hot, wanted).clamp_(max=len(self._hot) - 1)
            here = self._hot[at] == wanted
            asked = wanted[~here]
        else:
            asked = wanted
        # The parts' first nodes lie between ids: of none, both places are the same.
        cuts = torch.searchsorted(asked, self._bounds).tolist()
        questions: list[bytes] = []
        for part, (first, end) in enumerate(pairwise(cuts)):
            local = asked[first:end] - self._bounds[part]
            questions.append(local.contiguous().numpy().tobytes())
        mine = self._service.part
        own = 0 if mine is None else len(questions[mine]) // 8
        for place, count in enumerate(
            (1, len(ids), len(wanted) - len(asked), own, len(asked) - own)
        ):
            self._counts[place] += count
        fetch = RowFetch(self.name, 64, questions)
        self._service.fetch(fetch)
        return PendingRemoteRows(self, fetch, inverse, here, at)

    def stats(self) -> dict[str, Any]:
        """``reads``, the number of calls and batches, ``rows``, and ``bytes`` by where they were.

        The places are ``"kept"``, rows that ``cache`` stores here, ``"own"``, rows of this
        process's shard, and ``"others"``; a node counts once per read.
        """
        reads, rows, *tiers = self._counts
        sizes = (count * self._row for count in tiers)
        return {
            "reads": reads,
            "rows": rows,
            "bytes": dict(zip(("kept", "own", "others"), sizes, strict=True)),
        }

    def _put_together(
        self,
        came: Sequence[memoryview],
        inverse: torch.Tensor,
        is_hot: torch.Tensor | None,
        hot_index: torch.Tensor | None,
    ) -> torch.Tensor:
        import torch

        shape = self._shape[1:]
        parts = [_tensor(rows, self._dtype) for rows in came if len(rows)]
        count = len(inverse) and int(inverse.max()) + 1
        far = count if is_hot is None else int((~is_hot).sum())
        rows = torch.cat(parts) if parts else torch.empty(0, dtype=self._dtype)
        rows = rows.reshape(far, *shape)
        if is_hot is not None and hot_index is not None:
            both = torch.empty((count, *shape), dtype=self._dtype)
            both[is_hot] = self._hot_rows[hot_index[is_hot]]
            both[~is_hot] = rows
            rows = both
        return rows[inverse]

    def __repr__(self) -> str:
        return f"DistributedFeatures({self.name!r}, {self._dtype}, shape {self._shape})"


def _tensor(buffer: memoryview, dtype: torch.dtype) -> torch.Tensor:
    """The values behind a buffer, which torch wants writable though nobody writes to it."""
    import torch

    view = buffer_view(address_of(buffer), len(buffer), buffer) if buffer.readonly else buffer
    return torch.frombuffer(view, dtype=dtype)


class PendingRemoteRows:
    """A pending read of rows, returned by ``DistributedFeatures.read_async``."""

    __slots__ = ("_fetch", "_made", "_source", "_where")

    def __init__(self, source: DistributedFeatures, fetch: RowFetch, *where: Any) -> None:
        self._source, self._fetch, self._where = source, fetch, where
        self._made: torch.Tensor | None = None

    def wait(self) -> torch.Tensor:
        """The rows, as ``DistributedFeatures.read`` gives them; a second call gives the same."""
        if self._made is None:
            try:
                came = self._fetch.rows.result()
            except CancelledError:
                raise Error("rows: expected some on their way, got cancelled ones") from None
            self._made = self._source._put_together(came, *self._where)
        return self._made

    def done(self) -> bool:
        """True if ``wait()`` would return, or raise, at once."""
        return self._fetch.rows.done()

    def cancel(self) -> None:
        """Cancels the read."""
        self._fetch.rows.cancel()
