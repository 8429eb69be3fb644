"""``DeviceOwner``: answers questions for rows of a part by a GPU, which has the part, too."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from pygsampler._batch import layout as at
from pygsampler._sampling.plan import Plan
from pygsampler.distributed.owner import PLANS, Owner, Places
from pygsampler.graph import Graph
from pygsampler.sampler import PGSampler

if TYPE_CHECKING:
    from pygsampler.distributed.messages import Question
    from pygsampler.distributed.partition import Partition, Shard
    from pygsampler.minibatch import MiniBatch


# How many hops a launch has at most; as in Go.
_MOST_HOPS = 16


class DeviceOwner(Owner):
    """Draws rows of neighbours, uniformly and by weight, on a GPU; all else as ``Owner``.

    The rows of hop h are those that a batch of the part draws whose hops before it take no edges,
    with the same vertices as seeds. Rows of trees, and by time, are functions of what such a batch
    cannot be told, and walks take an edge of a row: the CPU answers those.
    """

    def __init__(
        self,
        partition: Partition,
        shard: Shard,
        out: Partition | None,
        out_shard: Shard | None,
        device: Any,
    ) -> None:
        super().__init__(partition, shard, out, out_shard)
        self._there = _of_all_vertices(shard).to(device)
        self._device_places: Places | None = None
        self._samplers: OrderedDict[tuple[str, int, int], PGSampler] = OrderedDict()

    def _drawn(self, question: Question) -> memoryview:
        plan = self._sampler(question.document, question.seed)._plan
        known = plan["family"] == "neighbor" and not plan["disjoint"]
        if not known or question.hop >= _MOST_HOPS:
            return super()._drawn(question)
        vertices = array("i" if question.bits == 32 else "q", bytes(question.vertices))
        made = self._sampler_of(question, plan).sample(
            self._there,
            vertices,
            epoch=question.epoch,
            batch=question.batch,
            exclude=self._excluded(question),
        )
        return self._answer(made, question)

    def _sampler_of(self, question: Question, plan: Plan) -> PGSampler:
        """Whose batches' outermost blocks are the rows of the question's hop."""
        key = question.document, question.seed, question.hop
        made = self._samplers.get(key)
        if made is None:
            fanouts = plan["fanouts"]
            made = self._samplers[key] = PGSampler(
                [fanouts[len(fanouts) - 1 - question.hop], *[0] * question.hop],
                seed=question.seed,
                **{name: plan[name] for name in ("replace", "prob", "mask", "edge_weights")},
            )
            if len(self._samplers) > PLANS:
                self._samplers.popitem(last=False)
        self._samplers.move_to_end(key)
        return made

    def _excluded(self, question: Question) -> memoryview | None:
        """The places of those of the part's edges that are left out; None: there are none."""
        if not len(question.exclude):
            return None
        shard = self.shard
        if shard.edge_ids is not None:
            if self._device_places is None:
                self._device_places = Places(shard.edge_ids)
            found = self._device_places.of(question.exclude)
            return memoryview(found).cast("q") if found else None
        first, end = shard.first_edge, shard.first_edge + shard.graph.num_edges
        given = memoryview(bytes(question.exclude)).cast("q")
        own = array("q", [each - first for each in given if first <= each < end])
        return memoryview(own) if own else None

    def _answer(self, made: MiniBatch, question: Question) -> memoryview:
        """The outermost block with the vertices' and edges' ids of the whole graph, as the engine
        answers on the CPU."""
        import numpy

        block, shard = made.blocks[0], self.shard
        indptr = block.indptr.cpu().numpy()
        indices = made.input_nodes.cpu().numpy()[block.indices.cpu().numpy()]
        ids = block.edge_ids.cpu().numpy()
        if shard.edge_ids is None:
            ids = ids.astype(f"i{self._edge_id_bits // 8}") + shard.first_edge
        else:
            ids = shard.edge_ids.numpy()[ids]
        columns = [indptr, indices, ids.astype(f"i{self._edge_id_bits // 8}", copy=False)]
        if block.edge_weights is not None:
            columns.append(block.edge_weights.cpu().numpy())
        places, size = [], 8 * (at.HEADER_WORDS + at.WORDS)
        for each in columns:
            size += -size % at.ALIGNMENT
            places.append(size)
            size += each.nbytes
        out = numpy.zeros(size + -size % 8, numpy.uint8)
        for place, each in zip(places, columns, strict=True):
            out[place : place + each.nbytes] = each.view(numpy.uint8)
        words = numpy.zeros(at.HEADER_WORDS + at.WORDS, numpy.int64)
        words[at.SIGNATURE], words[at.HOPS], words[at.SIZE] = at.MAGIC, 1, len(out)
        words[at.ID_BITS], words[at.EDGE_ID_BITS] = question.bits, self._edge_id_bits
        about = words[at.HEADER_WORDS :]
        about[at.NUM_SRC] = about[at.NUM_DST] = question.rows
        about[at.NUM_EDGES] = len(indices)
        about[[at.INDPTR, at.INDICES, at.EDGE_IDS, at.EDGE_WEIGHTS][: len(places)]] = places
        out[: words.nbytes] = words.view(numpy.uint8)
        return out.data


def owner_of(partition: Partition, rank: int, device: int) -> Owner:
    """Who answers for a part, on the CPU or on that device."""
    out, shard = partition.out, partition.shard(rank)
    behind = None if out is None else out.shard(rank)
    if device < 0:
        return Owner(partition, shard, out, behind)
    return DeviceOwner(partition, shard, out, behind, device)


def _of_all_vertices(shard: Shard) -> Graph:
    """A part's rows at the places of their vertices, between empty ones, since kernels draw a row
    by its number."""
    import numpy

    graph, own = shard.graph, shard.graph.indptr.numpy()
    indptr = numpy.concatenate([numpy.zeros(shard.first, own.dtype), own])
    data = dict(graph.edata)
    return Graph.from_csc(indptr, graph.indices, num_nodes=graph.num_nodes, edge_data=data)
