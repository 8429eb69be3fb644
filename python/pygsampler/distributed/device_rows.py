"""``DeviceRows``: rows of a part that a GPU draws, and the CPU's answers that they become."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygsampler._batch import layout as at
from pygsampler._graph.graph import Graph

if TYPE_CHECKING:
    from pygsampler._arrays.array import Array
    from pygsampler.distributed.messages import RowRequest
    from pygsampler.distributed.partition import Shard

# The most hops of a launch, as in Go.
MOST_HOPS = 16


class DeviceRows:
    """The rows of a part, or of a relation of one.

    The rows of hop h are the outermost block of a batch whose seeds are the nodes, and whose other
    hops take no edges. Rows of disjoint subgraphs, and rows by time, depend on values that such a
    batch does not have.
    """

    def __init__(self, shard: Shard, edge_id_bits: int) -> None:
        self._shard, self._edge_id_bits = shard, edge_id_bits

    def graph(self) -> Graph:
        """A graph with the rows at the places of their nodes, behind empty rows.

        The empty rows are needed since kernels draw a row by its number.
        """
        import numpy

        graph, own = self._shard.graph, self._shard.graph.indptr.numpy()
        indptr = numpy.concatenate([numpy.zeros(self._shard.first, own.dtype), own])
        data = dict(graph.edata)
        return Graph.from_csc(indptr, graph.indices, num_nodes=graph.num_nodes, edge_data=data)

    def excluded(self, question: RowRequest) -> Any:
        """The places of those of the part's edges that are left out; None: there are none."""
        import numpy

        shard = self._shard
        if not len(question.exclude):
            return None
        if shard.edge_ids is not None:
            places = numpy.frombuffer(shard.places(question.exclude), numpy.int64)
        else:
            places = numpy.frombuffer(question.exclude, numpy.int64) - shard.first_edge
            places = places[(places >= 0) & (places < shard.graph.num_edges)]
        return places if len(places) else None

    def answer(self, question: RowRequest, block: Any, nodes: Array) -> memoryview:
        """Returns a block with ids of the whole graph, as the engine answers on the CPU.

        ``nodes`` are the nodes that the numbers of the block refer to.
        """
        import numpy

        shard, width = self._shard, f"i{self._edge_id_bits // 8}"
        indices = nodes.cpu().numpy()[block.indices.cpu().numpy()]
        ids = block.edge_ids.cpu().numpy()
        if shard.edge_ids is None:
            ids = ids.astype(width) + shard.first_edge
        else:
            ids = shard.edge_ids.numpy()[ids]
        columns = [block.indptr.cpu().numpy(), indices, ids.astype(width, copy=False)]
        if block.edge_weights is not None:
            columns.append(block.edge_weights.cpu().numpy())
        places, size = [], 8 * at.num_words(1)
        for each in columns:
            size += -size % at.ALIGNMENT
            places.append(size)
            size += each.nbytes
        out = numpy.zeros(size + -size % 8, numpy.uint8)
        for place, each in zip(places, columns, strict=True):
            out[place : place + each.nbytes] = each.view(numpy.uint8)
        words = numpy.zeros(at.num_words(1), numpy.int64)
        words[at.SIGNATURE], words[at.SIZE] = at.MAGIC, len(out)
        words[[at.NUM_HOPS, at.NUM_TYPES, at.NUM_RELATIONS]] = 1
        words[at.ID_BITS], words[at.edge_id_bits_at(1)] = question.bits, self._edge_id_bits
        about = words[at.FIRST_BLOCK :]
        about[at.NUM_SRC] = about[at.NUM_DST] = question.rows
        about[at.NUM_EDGES] = len(indices)
        about[[at.INDPTR, at.INDICES, at.EDGE_IDS, at.EDGE_WEIGHTS][: len(places)]] = places
        out[: words.nbytes] = words.view(numpy.uint8)
        return out.data
