"""``TypedOwner``: answers questions for rows of a part of a graph with types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygsampler._core import memories
from pygsampler.distributed.messages import Question
from pygsampler.distributed.owner import Answering, place
from pygsampler.features import Features

if TYPE_CHECKING:
    from pygsampler.distributed.typed_partition import TypedPartition, TypedShard

# Between a type and the name of its array.
SEPARATOR = "\0"


class TypedOwner(Answering):
    """Draws rows of the relations of the part that it has.

    A question's hop is hop times relations, and the relation.
    """

    def __init__(self, partition: TypedPartition, shard: TypedShard) -> None:
        super().__init__()
        self._shard, self._widths = shard, [one.edge_id_bits for one in partition.relations]

    def _table(self, name: str) -> Features:
        kind, _, array_name = name.partition(SEPARATOR)
        return Features.from_tensor(self._shard.nodes[kind].ndata[array_name])

    def _drawn(self, question: Question) -> memoryview:
        sampler = self._sampler(question.document, question.seed)
        hop, relation = divmod(question.hop, len(self._widths))
        shard, graph = self._shard.relations[relation], self._shard.graph
        drawn_by = sampler._plan.drawn_by
        if drawn_by is not None:
            graph = graph._drawn_by(*drawn_by)
        ids = shard.edge_ids
        given = memories.call(
            "PartsTypedRows",
            graph._handle(),
            sampler._handle(),
            relation,
            *place(question.vertices),
            question.rows,
            question.bits,
            hop,
            question.epoch,
            question.batch,
            shard.first,
            shard.first_edge if ids is None else 0,
            self._widths[relation],
            0 if ids is None else ids._address,
            0 if ids is None else len(ids),
            *place(question.trees),
        )
        return self._waited(given)
