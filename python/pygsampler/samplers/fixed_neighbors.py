"""KGCN whose neighbors are drawn once, and are the same in every batch."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

from pygsampler._batch.minibatch import MiniBatch
from pygsampler._engine import library
from pygsampler._engine.checks import integer
from pygsampler._graph.graph import Graph
from pygsampler._sampling.pending import GroupLauncher, PendingBatch
from pygsampler._sampling.sampler import Sampler, check_graph
from pygsampler.samplers.neighbor import PGSampler
from pygsampler.samplers.node_wise import kgcn

if TYPE_CHECKING:
    from collections.abc import Hashable

__all__ = ["FixedNeighbors", "kgcn_static"]

_MOST = (1 << 31) - 1


class _Tables:
    """A cache of graphs of fixed edges, each held as long as the graph that it was drawn from."""

    def __init__(self, fanout: int, seed: int) -> None:
        self._about = fanout, seed
        self._begin()

    def _begin(self) -> None:
        self._known: WeakKeyDictionary[Graph, Graph] = WeakKeyDictionary()
        self._made: WeakSet[Graph] = WeakSet()

    def __getstate__(self) -> tuple[int, int]:
        return self._about

    def __setstate__(self, state: tuple[int, int]) -> None:
        self._about = state
        self._begin()

    def graph_for(self, graph: Graph) -> Graph:
        """Returns the graph of fixed neighbors, drawn at the first call; of such a graph itself."""
        # A forked child has a lock of its own: one of ours might be held by a thread that it lacks.
        with library.table_lock():
            if graph in self._made:
                return graph
            table = self._known.get(graph)
            if table is None:
                table = self._known[graph] = self._sample(graph)
                self._made.add(table)
            return table

    def _sample(self, graph: Graph) -> Graph:
        import numpy as np

        fanout, seed = self._about
        seeds = np.arange(graph.num_nodes, dtype=graph.dtype)
        batch = kgcn(fanouts=[fanout], seed=seed).sample(graph, seeds, epoch=0, batch=0)
        # All nodes are destinations, in their order: places in the batch are ids of the graph.
        block = batch.blocks[0]
        return Graph.from_csc(
            block.indptr, block.indices, edge_ids=block.edge_ids, num_nodes=graph.num_nodes
        )


class FixedNeighbors(Sampler[MiniBatch]):
    """Samples the same neighbors of a node in every batch; ``kgcn_static`` returns it.

    Parameters
    ----------
    fanout : int
        Draws of each node.
    hops : int
        Blocks of a batch.
    seed : int or None
        See ``PGSampler``.
    """

    def __init__(self, fanout: int, hops: int, seed: int | None) -> None:
        super().__init__(seed)
        self._fanout = fanout
        self._all = PGSampler([-1] * hops, seed=self.seed)
        self._tables = _Tables(fanout, self.seed)

    @property
    def plan(self) -> Hashable:
        """The options."""
        return "fixed neighbors", self._fanout, self._all.plan

    def sampled_graph(self, graph: Graph) -> Graph:
        """The graph of the edges that were drawn, by the ids that they have in ``graph``."""
        check_graph(graph)
        return self._tables.graph_for(graph)

    def launch(
        self,
        graph: Graph,
        seeds: Any,
        *,
        epoch: int,
        batch: int,
        exclude: Any = None,
        threads: int = 0,
        form: str = "array",
        asynchronous: bool = False,
    ) -> PendingBatch[MiniBatch]:
        """Starts a batch of the fixed edges, as ``Sampler.launch`` does.

        Parameters
        ----------
        exclude : int32 or int64, shape [K], optional
            Ids of edges in ``graph``: fixed edges among them are left out.
        graph, seeds, epoch, batch, threads, form, asynchronous
            The arguments of ``Sampler.launch``.
        """
        return self._all.launch(
            self.sampled_graph(graph),
            seeds,
            epoch=epoch,
            batch=batch,
            exclude=exclude,
            threads=threads,
            form=form,
            asynchronous=asynchronous,
        )

    def group_launcher(
        self, graph: Graph, *, epoch: int, form: str = "array"
    ) -> GroupLauncher | None:
        return self._all.group_launcher(self.sampled_graph(graph), epoch=epoch, form=form)

    def _many(
        self, graph: Graph, many: list[Any], epoch: int, batch: int, memory: int | None
    ) -> list[Any]:
        return self._all._many(self.sampled_graph(graph), many, epoch, batch, memory)

    def with_seed(self, seed: int | None) -> FixedNeighbors:
        """Returns a sampler with the neighbors of another seed; the same seed keeps them."""
        other = super().with_seed(seed)
        other._all = self._all.with_seed(other.seed)
        if other.seed != self.seed:
            other._tables = _Tables(self._fanout, other.seed)
        return other

    def with_gpu_share(self, share: float) -> FixedNeighbors:
        other = copy.copy(self)
        other._seeded_as(self)
        other._all = self._all.with_gpu_share(share)  # type: ignore[assignment]
        return other

    def __repr__(self) -> str:
        hops = len(self._all.plan["fanouts"])
        return f"kgcn_static(fanout={self._fanout}, hops={hops}, seed={self.seed})"


def kgcn_static(*, fanout: int, hops: int = 2, seed: int | None = None) -> FixedNeighbors:
    """KGCN (Wang et al., 2019) as its code samples: each node's neighbors are drawn once.

    The draws are those of ``kgcn``: ``fanout`` for each node of the graph, drawn at the first batch
    and stored in the sampler as long as the graph lives. A batch has all draws of each node that it
    reaches, whatever its number and epoch; another seed draws others. Edges have the ids that they
    have in the graph.

    Parameters
    ----------
    fanout : int
        Draws of each node, at least 1; the paper has 4 to 8. A node with fewer edges draws with
        replacement, a node without edges has no draws.
    hops : int
        Blocks of a batch, at least 1; the paper has 1 and 2.
    seed : int, optional
        See ``PGSampler``. Processes that train together need one common seed.

    Raises
    ------
    TypeError, ValueError
        For options of a wrong type or value.

    Notes
    -----
    The stored edges take ``num_nodes * fanout`` ids and edge ids, in the memory of the graph's
    device. A pickle, and so a worker process, draws the same edges again.
    """
    return FixedNeighbors(integer(fanout, "fanout", 1, _MOST), integer(hops, "hops", 1, 64), seed)
