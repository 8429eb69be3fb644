"""``PartitionedRelation``, ``PartitionedGroup``: relations whose rows lie in several processes."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar

from pygsampler._arrays.array import as_array
from pygsampler._graph import named_arrays as graph_data
from pygsampler._graph.csc_arrays import CscArrays
from pygsampler._graph.relation import Relation
from pygsampler._graph.relation_group import RelationGroup

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pygsampler._arrays.array import Array
    from pygsampler._graph.program_arrays import ProgramArrayNames
    from pygsampler._graph.schema import EdgeType
    from pygsampler.distributed.partition import Partition

G = TypeVar("G", bound="PartitionedGroup")


class NoService:
    """Stands for the service of one relation of a heterogeneous graph, which has none."""

    def check(self, plan: Any) -> NoReturn:
        """Raises ValueError."""
        raise ValueError(
            "graph: expected a partitioned graph, got one relation of a partitioned heterogeneous "
            "graph"
        )

    def close(self) -> None:
        """Does nothing: the graph that has the relation closes it."""


class PartitionedRelation(Relation):
    """A relation of the nodes of all parts, whose rows are drawn where they lie."""

    __slots__ = ("_outward", "_partition", "_service")

    # The relation of the out-edges; None where the parts have none.
    _outward: PartitionedRelation | None
    _partition: Partition

    @classmethod
    def _in(cls, partition: Partition, service: Any = None) -> PartitionedRelation:
        """Returns the relation of a partition, without rows."""
        made = cls._new(_no_rows(partition), partition.num_nodes)
        made._partition, made._outward = partition, None
        made._service = NoService() if service is None else service
        if service is not None and partition.out is not None:
            made._outward = cls._in(partition.out)
            made._outward._service = service
        return made

    @property
    def num_edges(self) -> int:
        """The number of edges, of all parts."""
        return int(self._partition.num_edges)

    @property
    def indptr(self) -> Array:
        """Raises ValueError: no process has it."""
        return self._refuse("indptr")

    @property
    def indices(self) -> Array:
        """Raises ValueError: no process has them."""
        return self._refuse("indices")

    @property
    def edge_ids(self) -> Array | None:
        """Raises ValueError: no process has them; ``shard.edge_ids`` has the ids of its part."""
        return self._refuse("edge_ids")

    def close(self) -> None:
        """Releases the handles."""
        if self._outward is not None:
            self._outward.close()
        super().close()

    def _cached(self, key: Any, make: Any) -> NoReturn:
        if isinstance(self._service, NoService):
            self._service.check(None)
        raise ValueError(
            "sampler: expected one of neighbors, walks or a program for a partitioned graph, got "
            "one of another family"
        )

    def _sampled_edges(self, kind: str, name: str) -> PartitionedRelation:
        if isinstance(self._service, NoService):
            self._service.check(None)
        # Each part has its own tables; the service knows the names.
        return self

    def _with_named(self, names: ProgramArrayNames) -> PartitionedRelation:
        # Edge arrays come with the rows.
        self._service.check_arrays(list(names.edges), names.weight)
        if of_nodes := sorted({*names.vertices, *names.rows}):
            self._refuse(f"node arrays ({', '.join(map(repr, of_nodes))})")
        return self

    def _walked(
        self,
        direction: Literal["in", "out"],
        prob: str | None = None,
        types: str | None = None,
        kinds: int = 0,
        second: bool = False,
    ) -> PartitionedRelation:
        if direction == "in":
            return self
        # Without out-edges the service raises the error.
        return self if self._outward is None else self._outward

    def _row_counts(self) -> tuple[graph_data.RowCount, graph_data.RowCount]:
        edges, more = self._partition.num_edges, self._partition.has_edge_ids
        return (
            graph_data.RowCount(graph_data.EDGES, edges, more),
            graph_data.RowCount(graph_data.NODES, self._num_nodes),
        )

    def _refuse(self, what: str) -> NoReturn:
        raise refusal(what, self._partition.num_parts)


class PartitionedGroup(RelationGroup):
    """The relations of a partitioned heterogeneous graph."""

    __slots__ = ("_num_parts", "_service")

    _num_parts: int

    @classmethod
    def _in(
        cls: type[G],
        nodes: Mapping[str, int],
        partitions: Mapping[EdgeType, Partition],
        service: Any,
    ) -> G:
        """Returns the relations of partitions, without rows."""
        relations = {kind: PartitionedRelation._in(each) for kind, each in partitions.items()}
        made = cls(nodes, relations)
        made._num_parts = next(iter(partitions.values())).num_parts
        made._service = service
        return made

    def _sampled_edges(self: G, kind: str, name: str) -> G:
        # A partitioned relation is returned as it is.
        return self

    def _time_sorted(self, name: str, mask: str | None = None, prob: str | None = None) -> NoReturn:
        raise refusal("times", self._num_parts)


def refusal(what: str, num_parts: int) -> ValueError:
    """The error for what no process has of a graph in so many parts."""
    return ValueError(
        f"graph: expected a graph on this machine for its {what}, got one in {num_parts} parts; "
        "shard.graph has those of this process's part"
    )


def _no_rows(partition: Partition) -> CscArrays:
    """The arrays of a graph without rows, as wide as those of the parts."""
    kind = "i" if partition.dtype == "int32" else "q"
    ids = "i" if partition.edge_id_bits == 32 else "q"
    return CscArrays(
        as_array(array("q", [0]), "indptr"),
        as_array(array(kind), "indices"),
        as_array(array(ids), "edge_ids"),
    )
