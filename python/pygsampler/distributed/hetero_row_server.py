"""``HeteroRowServer``: answers requests for rows of a shard of a heterogeneous graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygsampler._features.features import Features
from pygsampler.distributed.messages import RowRequest
from pygsampler.distributed.row_server import RowServerBase, along_out_edges
from pygsampler.distributed.temporal import time_sorted_rows

if TYPE_CHECKING:
    from pygsampler._sampling.engine_sampler import EngineSampler
    from pygsampler.distributed.hetero_partition import HeteroPartition, HeteroShard

# Between a type and the name of its array.
SEPARATOR = "\0"


class HeteroRowServer(RowServerBase):
    """Draws rows of the relations of the part that it has.

    A question's hop is hop times relations, and the relation.
    """

    def __init__(self, partition: HeteroPartition, shard: HeteroShard) -> None:
        super().__init__()
        self.shard, self._widths = shard, [one.edge_id_bits for one in partition.relations]
        # State of the relations that walks follow.
        self._ascending: dict[int, Any] = {}
        self._by_time: dict[tuple[Any, ...], tuple[Any, list[Any]]] = {}

    def _table(self, name: str) -> Features:
        kind, _, array_name = name.partition(SEPARATOR)
        return Features.from_tensor(self.shard.nodes[kind].ndata[array_name])

    def _sample_rows(self, question: RowRequest) -> memoryview:
        sampler = self._sampler(question.document, question.seed)
        plan = sampler._plan
        hop, relation = divmod(question.hop, len(self._widths))
        if plan["family"] == "walk":
            return self._edges(question, sampler, hop, relation)
        shard, by_time = self.shard.relations[relation], None
        graph: Any = self.shard.graph._source
        edge_array = plan.edge_array
        if plan.get("time") is not None:
            graph, timed = self._time_sorted(plan["time"], plan["mask"], plan["prob"])
            if timed[relation] is not None:
                by_time = timed[relation].memory.address, 0
        elif edge_array is not None:
            graph = graph._sampled_edges(*edge_array)
        return self._read(
            question,
            graph,
            sampler,
            shard,
            hop,
            self._widths[relation],
            shard.edge_ids,
            first_edge=shard.first_edge,
            relation=relation,
            by_time=by_time,
        )

    def _time_sorted(self, name: str, mask: str | None, prob: str | None) -> tuple[Any, list[Any]]:
        """The relations' rows in the order of time, and their times.

        ``RelationGroup._time_sorted`` computes the same for a whole graph.
        """
        key = name, mask, prob
        found = self._by_time.get(key)
        if found is not None:
            return found
        rows = self.shard.graph._source
        for way, by in (("mask", mask), ("prob", prob)):
            if by is not None:
                rows = rows._sampled_edges(way, by)
        timed: list[Any] = []
        for own in self.shard.relations:
            edata = own.graph.edata
            how = [each if each in edata else None for each in (mask, prob)]
            has = name in edata or name in own.times
            timed.append(time_sorted_rows(own, name, *how) if has else None)
        made = rows._of_rows(
            {
                kind: plain if part is None else part.graph
                for (kind, plain), part in zip(rows._open().items(), timed, strict=True)
            }
        )
        self._by_time[key] = made, timed
        return made, timed

    def _edges(
        self, question: RowRequest, sampler: EngineSampler, step: int, relation: int
    ) -> memoryview:
        """An edge of a relation for each walk, as ``MetaPathWalk`` takes them."""
        plan = sampler._plan
        if along_out_edges(plan):
            # They ascend.
            shard = self.shard.outward[relation]
            graph = shard.graph._source
        else:
            shard = self.shard.relations[relation]
            if relation not in self._ascending:
                # To ask whether rows ascend reads all edges.
                self._ascending[relation] = shard.graph._source._ascending()
            graph = self._ascending[relation]
        graph = graph._by_weights(plan["prob"])
        return self._read(
            question,
            graph,
            sampler,
            shard,
            step,
            64,
            shard.edge_ids,
            first_edge=shard.first_edge,
        )
