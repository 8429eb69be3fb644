"""``DistributedGraph``: a graph whose parts lie in several processes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from pygsampler._arrays import devices
from pygsampler._graph.graph import Graph
from pygsampler._graph.schema import ByEdgeType
from pygsampler.distributed.device_row_server import row_server
from pygsampler.distributed.features import DistributedFeatures
from pygsampler.distributed.hetero_partition import HeteroPartition
from pygsampler.distributed.hetero_row_server import SEPARATOR
from pygsampler.distributed.relation import PartitionedGroup, PartitionedRelation, refusal
from pygsampler.distributed.row_service import RowService
from pygsampler.distributed.temporal import times_of

if TYPE_CHECKING:
    from pygsampler._graph.schema import EdgeType
    from pygsampler.distributed.exchange import Exchange
    from pygsampler.distributed.partition import Partition


class DistributedGraph(Graph):
    """A partitioned graph, of which this process has one part; ``open_graph`` returns it.

    Samplers and loaders take it for a ``Graph``: ``PGSampler`` with all that it has on the CPU, all
    walks, and programs of which columns are all that they take of A, such as ``LaborSampler``;
    of a heterogeneous one also ``HGTSampler`` and ``MetaPathWalk``. A batch
    is byte for byte that of the whole graph on one machine, for any number of parts. Its rows are
    drawn where they lie, and numbered here; those of a program come whole.

    ``close()`` (or leaving a ``with`` block) is for all processes: each goes on answering the
    others until all have closed.
    """

    __slots__ = ("_partition", "_service", "_shard")

    _partition: Partition
    _shard: Any

    @classmethod
    def _opened(
        cls, partition: Partition, exchange: Exchange, device: int = devices.CPU
    ) -> DistributedGraph:
        owner = row_server(partition, exchange.rank, device) if exchange.owns else None
        source: PartitionedRelation | PartitionedGroup
        if isinstance(partition, HeteroPartition):
            relations, out = partition.relations, partition.out
            of_nodes = {kind: nodes.arrays["nodes"] for kind, nodes in partition.nodes.items()}
            sources = [of_nodes.get(kind[0], {}) for kind in partition.edge_types]
            names = {name for arrays in of_nodes.values() for name in arrays}
            times = partial(times_of, relations, sources, names)
            service = RowService(exchange, owner, relations, out, times)
            parts = dict(zip(partition.edge_types, relations, strict=True))
            source = PartitionedGroup._in(partition.num_nodes, parts, service)
        else:
            nodes = partition.arrays["nodes"]
            times = partial(times_of, [partition], [nodes], nodes)
            outward = [] if partition.out is None else [partition.out]
            service = RowService(exchange, owner, [partition], outward, times)
            source = PartitionedRelation._in(partition, service)
        return cls._with_parts(source, partition, None if owner is None else owner.shard)

    @classmethod
    def _with_parts(
        cls, source: PartitionedRelation | PartitionedGroup, partition: Partition, shard: Any
    ) -> DistributedGraph:
        graph = cls._wrap(source)
        graph._partition, graph._shard, graph._service = partition, shard, source._service
        return graph

    def _as_one_type(self, kind: EdgeType) -> DistributedGraph:
        """Returns this homogeneous graph as a heterogeneous one of an edge type."""
        nodes, parts = {kind[0]: self.num_nodes}, {kind: self._partition}
        source = PartitionedGroup._in(nodes, parts, self._service)
        return DistributedGraph._with_parts(source, self._partition, self._shard)

    def __getitem__(self, edge_type: EdgeType | str) -> Graph:
        """Returns the relation of an edge type, whose rows nothing samples by itself."""
        if self._relation is not None:
            return super().__getitem__(edge_type)
        relation: Any = ByEdgeType(self._relations())[edge_type]
        return DistributedGraph._with_parts(relation, relation._partition, None)

    @property
    def partition(self) -> Partition:
        """The files of the parts."""
        return self._partition

    @property
    def shard(self) -> Any:
        """The ``Shard`` that this process has; None where it has none."""
        return self._shard

    def features(self, name: str, node_type: str | None = None) -> DistributedFeatures:
        """Returns the node array of that name, whose rows lie with the nodes, for loaders.

        Parameters
        ----------
        name : str
        node_type : str, optional
            The type of the nodes, for a heterogeneous graph.

        Raises
        ------
        KeyError
            Where the parts have none of that name and type.
        """
        partition, called = self._partition, name
        nodes = None if node_type is not None else partition
        if isinstance(partition, HeteroPartition):
            nodes = partition.nodes.get(str(node_type))
            called = f"{node_type}{SEPARATOR}{name}"
        arrays = {} if nodes is None else nodes.arrays["nodes"]
        if nodes is None or name not in arrays:
            have = ", ".join(map(repr, arrays)) or "none"
            of_type = "" if node_type is None else f" of {node_type!r}"
            raise KeyError(
                f"expected the name of a node array of the graph ({have}), got {name!r}{of_type}"
            )
        return DistributedFeatures(
            self._service, called, arrays[name], nodes.num_nodes, nodes.bounds
        )

    def to(self, device: Any) -> DistributedGraph:
        """Returns itself for the ``device`` ``"cpu"``; ValueError for others."""
        return self if device == "cpu" else self._refuse("rows")

    def pin(self, device: Any = "cuda") -> NoReturn:
        """Raises ValueError for any ``device``: no process has all rows."""
        self._refuse("rows")

    def share(self, devices: Any, **options: Any) -> NoReturn:
        """Raises ValueError for any ``devices``: no process has all rows."""
        self._refuse("rows")

    def save(self, path: Any, **options: Any) -> NoReturn:
        """Raises ValueError for any ``path``: no process has the graph."""
        self._refuse("edges")

    def with_data(self, edge_data: Any = None, node_data: Any = None) -> NoReturn:
        """Raises ValueError: arrays are written by ``partition``, together with the graph.

        Parameters
        ----------
        edge_data, node_data
            The arguments of ``Graph.with_data``.
        """
        self._refuse("arrays")

    def index_of(self, labels: Any) -> NoReturn:
        """Raises ValueError for any ``labels``: the parts have no names."""
        self._refuse("names")

    def in_degrees(self, *nodes: Any, **options: Any) -> NoReturn:
        """Raises ValueError: no process has the edges."""
        self._refuse("edges")

    def out_degrees(self, *nodes: Any, **options: Any) -> NoReturn:
        """Raises ValueError: no process has the edges."""
        self._refuse("edges")

    def reverse_edge_ids(self, *types: Any, **options: Any) -> NoReturn:
        """Raises ValueError: no process has the edges."""
        self._refuse("edges")

    def to_networkx(self, **options: Any) -> NoReturn:
        """Raises ValueError: no process has the edges."""
        self._refuse("edges")

    def to_scipy(self, **options: Any) -> NoReturn:
        """Raises ValueError: no process has the edges."""
        self._refuse("edges")

    def to_dgl(self, **options: Any) -> NoReturn:
        """Raises ValueError: no process has the edges."""
        self._refuse("edges")

    def to_pyg(self, **options: Any) -> NoReturn:
        """Raises ValueError: no process has the edges."""
        self._refuse("edges")

    def to_homogeneous(self, **options: Any) -> NoReturn:
        """Raises ValueError: no process has the graph."""
        self._refuse("edges")

    def _joint(self, *types: Any) -> NoReturn:
        self._refuse("relations together")

    def _refuse(self, what: str) -> NoReturn:
        raise refusal(what, self._partition.num_parts)

    def close(self) -> None:
        """Leaves: returns once all processes have closed theirs."""
        self._service.close()
        super().close()

    def _check_in_one_place(self) -> NoReturn:
        raise TypeError(
            "DistributedGraph: expected something to pickle, got a graph whose parts lie in "
            "several processes; open it where it is needed"
        )

    def __repr__(self) -> str:
        if self._relation is None:
            return f"DistributedGraph({self._partition!r})"
        return (
            f"DistributedGraph(num_nodes={self.num_nodes}, num_edges={self.num_edges}, "
            f"{'in' if self._shard is None else f'part {self._shard.rank} of'} "
            f"{self._partition.num_parts}{' parts' if self._shard is None else ''})"
        )
