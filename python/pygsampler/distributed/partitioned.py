"""``PartitionedGraph``: what graphs in parts have, with types or without, and what they refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

if TYPE_CHECKING:
    from pygsampler.distributed.hetero_partition import HeteroPartition, HeteroShard
    from pygsampler.distributed.partition import Partition, Shard
    from pygsampler.distributed.row_service import RowService

P = TypeVar("P", "Partition", "HeteroPartition")
S = TypeVar("S", "Shard", "HeteroShard")
T = TypeVar("T")


class PartitionedGraph(Generic[P, S]):
    """A graph of which this process has one part, or none; before ``Graph`` or ``HeteroGraph``."""

    __slots__ = ()

    # A class with slots declares them.
    _partition: P
    _service: RowService
    _shard: S | None

    @property
    def partition(self) -> P:
        """Where the parts are."""
        return self._partition

    @property
    def shard(self) -> S | None:
        """The part that this process has; None where it has none."""
        return self._shard

    def to(self: T, device: Any) -> T:
        """Only ``"cpu"``, which it is; ValueError for others."""
        if device != "cpu":
            self._not_here("rows")  # type: ignore[attr-defined]
        return self

    def pin(self, device: Any = "cuda") -> NoReturn:
        """ValueError: no process has all rows."""
        self._not_here("rows")

    def share(self, devices: Any, **options: Any) -> NoReturn:
        """ValueError: no process has all rows."""
        self._not_here("rows")

    def save(self, path: Any, **options: Any) -> NoReturn:
        """ValueError: no process has the graph."""
        self._not_here("edges")

    def index_of(self, labels: Any) -> NoReturn:
        """ValueError: the parts have no names."""
        self._not_here("names")

    def in_degrees(self, *nodes: Any, **options: Any) -> NoReturn:
        """ValueError: no process has the edges."""
        self._not_here("edges")

    def out_degrees(self, *nodes: Any, **options: Any) -> NoReturn:
        """ValueError: no process has the edges."""
        self._not_here("edges")

    def reverse_edge_ids(self, *types: Any, **options: Any) -> NoReturn:
        """ValueError: no process has the edges."""
        self._not_here("edges")

    def to_networkx(self, **options: Any) -> NoReturn:
        """ValueError: no process has the edges."""
        self._not_here("edges")

    def to_scipy(self, **options: Any) -> NoReturn:
        """ValueError: no process has the edges."""
        self._not_here("edges")

    def to_dgl(self, **options: Any) -> NoReturn:
        """ValueError: no process has the edges."""
        self._not_here("edges")

    def to_pyg(self, **options: Any) -> NoReturn:
        """ValueError: no process has the edges."""
        self._not_here("edges")

    def _drawn_by(self: T, kind: str, name: str) -> T:
        # Each part has its own tables; the service knows the names.
        return self

    def _not_here(self, what: str) -> NoReturn:
        raise ValueError(
            f"graph: expected a graph on this machine for its {what}, got one in "
            f"{self._partition.num_parts} parts; shard.graph has those of this process's part"
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__}: expected something to pickle, got a graph whose parts lie in "
            "several processes; open it where it is needed"
        )
