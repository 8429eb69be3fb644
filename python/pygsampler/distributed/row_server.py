"""``RowServer``: answers questions for rows of a part of a graph."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from pygsampler._engine import memory
from pygsampler._engine import request_layout as at
from pygsampler._engine.memory import Memory
from pygsampler._engine.pending import PackedJob
from pygsampler._features.features import Features
from pygsampler._graph.graph import Graph
from pygsampler._sampling.engine_sampler import EngineSampler
from pygsampler._sampling.plan import Plan
from pygsampler._sampling.request import empty_request
from pygsampler.distributed.messages import (
    FEATURES,
    RowReply,
    RowRequest,
    concatenate,
    read_requests,
)
from pygsampler.distributed.temporal import time_sorted_rows

if TYPE_CHECKING:
    from pygsampler._arrays.array import Array
    from pygsampler.distributed.partition import Partition, Shard

# Plans of others that are kept.
PLANS = 64


class RowServerBase:
    """Answers questions for what a part has."""

    def __init__(self) -> None:
        self._tables: dict[str, Features] = {}
        self._plans: OrderedDict[tuple[str, int], EngineSampler] = OrderedDict()

    def answer(self, message: bytes | memoryview) -> bytes:
        """The answers to the questions of a message, one behind another."""
        return concatenate(
            [
                piece
                for question in read_requests(memoryview(message))
                for piece in self.reply(question).pieces()
            ]
        )

    def reply(self, question: RowRequest) -> RowReply:
        """The answer to a question; what goes wrong is one, too."""
        try:
            if question.hop == FEATURES:
                return RowReply.from_buffer(self._values(question))
            return RowReply.from_buffer(self._sample_rows(question))
        except Exception as error:
            return RowReply.failed(f"{type(error).__name__}: {error}")

    def _values(self, question: RowRequest) -> memoryview:
        """Rows of an array of this part's nodes."""
        table = self._tables.get(question.document)
        if table is None:
            table = self._tables[question.document] = self._table(question.document)
        rows = table.read(array("i" if question.bits == 32 else "q", bytes(question.vertices)))
        return (
            memory.buffer_view(rows._address, rows.nbytes, rows) if rows.nbytes else memoryview(b"")
        )

    def _table(self, name: str) -> Features:
        """The array of that name."""
        raise NotImplementedError

    def _sample_rows(self, question: RowRequest) -> memoryview:
        """The memory of the rows that a question asks for."""
        raise NotImplementedError

    def _read(
        self,
        question: RowRequest,
        graph: Any,
        sampler: EngineSampler,
        shard: Shard,
        hop: int,
        width: int,
        ids: Array | None,
        *,
        first_edge: int,
        relation: int = 0,
        by_time: tuple[int, int] | None = None,
    ) -> memoryview:
        """The memory of rows, or of edges for walks, that the engine draws of a part."""
        exclude = question.exclude
        if ids is not None and len(exclude):
            exclude = shard.places(exclude)
        sorted_ = array("q", by_time or ())
        words = empty_request(at.SIZE_ROWS)
        words[at.KIND], words[at.FLAGS] = at.KIND_ROWS, at.FLAG_PROMPT
        words[at.GRAPH], words[at.SAMPLER] = graph._handle(), sampler._handle()
        words[at.SEEDS], words[at.NUM_SEEDS] = place(question.vertices), question.rows
        words[at.SEED_BITS], words[at.HOP] = question.bits, hop
        words[at.EPOCH], words[at.BATCH] = question.epoch, question.batch
        words[at.EXCLUDE], words[at.NUM_EXCLUDE] = place(exclude), len(exclude) // 8
        words[at.SORTED] = sorted_.buffer_info()[0] if by_time else 0
        words[at.RELATION], words[at.FIRST] = relation, shard.first
        words[at.FIRST_EDGE] = first_edge if ids is None else 0
        words[at.EDGE_ID_BITS] = width
        if ids is not None:
            words[at.IDS], words[at.NUM_IDS] = ids._address, len(ids)
            words[at.IDS_BITS] = ids._bits
        words[at.SUBGRAPH_IDS] = place(question.subgraph_ids)
        words[at.ROW_BOUNDS] = place(question.bounds)
        made: Memory = PackedJob(words).begin()._result()
        return memory.buffer_view(made.data, made.size, made)

    def _sampler(self, document: str, seed: int) -> EngineSampler:
        """A plan's handle here, whoever's it is."""
        key = document, seed
        found = self._plans.get(key)
        if found is None:
            found = self._plans[key] = EngineSampler(Plan.of_document(document), seed)
            if len(self._plans) > PLANS:
                self._plans.popitem(last=False)
        self._plans.move_to_end(key)
        return found


class RowServer(RowServerBase):
    """Draws rows of the part that it has, as a batch of the whole graph does."""

    def __init__(
        self,
        partition: Partition,
        shard: Shard,
        out: Partition | None = None,
        out_shard: Shard | None = None,
    ) -> None:
        super().__init__()
        self._edge_id_bits, self.shard = partition.edge_id_bits, shard
        self._out = out_shard
        self._out_edge_id_bits = 0 if out is None else out.edge_id_bits
        # The largest values of type arrays, by out-edges or not.
        self._largest: dict[tuple[bool, str], int] = {}
        self._by_id: Graph | None = None

    def _table(self, name: str) -> Features:
        return Features.from_tensor(self.shard.ndata[name])

    def _sample_rows(self, question: RowRequest) -> memoryview:
        sampler = self._sampler(question.document, question.seed)
        plan = sampler._plan
        shard, width = self.shard, self._edge_id_bits
        if along_out_edges(plan):
            if self._out is None:
                raise ValueError("direction: expected 'in' for parts without out-edges, got 'out'")
            shard, width = self._out, self._out_edge_id_bits
        graph: Any = shard.graph._source
        ids, by_time, first = shard.edge_ids, None, shard.first_edge
        if plan["family"] == "walk":
            graph = self._walked(shard, plan)
        elif plan["family"] == "rows" and (plan["arrays"] or plan.edge_array is not None):
            # Arrays of edges are ordered by the places of the edges.
            if plan.edge_array is not None:
                graph = graph._sampled_edges(*plan.edge_array)
            graph = graph._with_arrays(plan["arrays"], ())
        elif plan["family"] == "temporal":
            timed = time_sorted_rows(shard, plan["time"], plan["mask"], plan["prob"])
            graph, by_time = timed.graph, (timed.memory.address, int(timed.by_node))
        elif (drawn_by := plan.edge_array) is not None:
            graph = graph._sampled_edges(*drawn_by)
        elif ids is not None:
            graph, ids = self._with_ids(), None
            first = 0
        return self._read(
            question,
            graph,
            sampler,
            shard,
            question.hop,
            width,
            ids,
            first_edge=first,
            by_time=by_time,
        )

    def _walked(self, shard: Shard, plan: Plan) -> Any:
        """The part's rows as walks read them; the edges' ids are their places in it."""
        types, second = plan["edge_types"], (plan["p"], plan["q"]) != (1, 1)
        if types is None:
            return shard.graph._source._walked("in", plan["prob"], second=second)
        key = shard is self._out, types
        largest = self._largest.get(key)
        if largest is None:
            largest = int(shard.graph.edata[types].numpy().max(initial=0))
            self._largest[key] = largest
        # Another part's may be larger.
        kinds = max(largest, *plan["metapath"]) + 1
        return shard.graph._source._walked("in", plan["prob"], types, kinds, second=second)

    def _with_ids(self) -> Graph:
        """The part's graph with its edges' ids in the whole one, which no array has a row for."""
        if self._by_id is None:
            graph = self.shard.graph
            self._by_id = Graph.from_csc(
                graph.indptr,
                graph.indices,
                edge_ids=self.shard.edge_ids,
                num_nodes=graph.num_nodes,
            )
        return self._by_id


def along_out_edges(plan: Plan) -> bool:
    """True if a plan's rows are those of out-edges."""
    return plan["family"] == "walk" and bool(plan["direction"] == "out")


def place(part: bytes | memoryview) -> int:
    """The address of bytes that are held; 0 for none."""
    return memory.address_of(memoryview(part)) if len(part) else 0
