"""ShaDow with a subgraph for each root, by hops or by PageRank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pygsampler._arrays.array import Array
from pygsampler._arrays.ids import as_ids
from pygsampler._batch.block import Block
from pygsampler._batch.minibatch import as_torch
from pygsampler._batch.subgraph import Subgraph
from pygsampler._engine.checks import boolean, describe, finite, integer
from pygsampler._graph.derived import page_ranks
from pygsampler._sampling.pending import CompletedJob, MappedJob, PendingBatch
from pygsampler._sampling.sampler import Sampler
from pygsampler.samplers.neighbor import PGSampler

if TYPE_CHECKING:
    from collections.abc import Hashable

    import torch

    from pygsampler._graph.graph import Graph

__all__ = ["DisjointShaDow", "PageRankShaDow", "ppr_shadow", "shadow_disjoint"]

_MOST = (1 << 31) - 1
# Scores of the engine are of this.
_ONE = 1 << 60
# A walk of the paper's that stays where it is at every other step, and else stops with the chance
# 0.15, stops with this one where it moves.
_ALPHA = 2 * 0.15 / 1.15


class _ShaDow(Sampler[Subgraph]):
    """Base of both ShaDow samplers: batches of torch tensors that are subgraphs, with trees."""

    @property
    def result_kind(self) -> str:
        """``"subgraph"``."""
        return "subgraph"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.plan}, seed={self.seed})"


class DisjointShaDow(_ShaDow):
    """ShaDow by hops, with a subgraph for each root; ``shadow_disjoint`` makes it."""

    disjoint = True

    def __init__(self, sampler: Sampler[Any]) -> None:
        self._seeded_as(sampler)
        self._hops = sampler

    @property
    def plan(self) -> Hashable:
        """The plan of the hops."""
        return "shadow", self._hops.plan

    @property
    def edge_array(self) -> tuple[str, str] | None:
        return self._hops.edge_array

    def sampled_graph(self, graph: Graph) -> Graph:
        """The graph: edges that are not drawn are in subgraphs all the same."""
        # Tables are made now, and wrong weights are errors.
        self._hops.sampled_graph(graph)
        return graph

    def with_seed(self, seed: int | None) -> DisjointShaDow:
        """Returns the sampler with another seed, as ``Sampler.with_seed`` does."""
        return DisjointShaDow(self._hops.with_seed(seed))

    def with_gpu_share(self, share: float) -> DisjointShaDow:
        return DisjointShaDow(self._hops.with_gpu_share(share))

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
    ) -> PendingBatch[Subgraph]:
        """Starts a batch as ``Sampler.launch`` does; NotImplementedError for ``exclude``."""
        _no_exclude(exclude)
        _need_torch()
        job = self._hops.launch(
            graph,
            seeds,
            epoch=epoch,
            batch=batch,
            threads=threads,
            form=form,
            asynchronous=asynchronous,
        )

        def subgraph_of(hops: Any) -> Subgraph:
            found = as_torch(hops)
            return _subgraph(
                graph, found.input_nodes, found.subgraph_ids, found.output_nodes, None, epoch, batch
            )

        return MappedJob(job, subgraph_of)


class PageRankShaDow(_ShaDow):
    """ShaDow by personalised PageRank; ``ppr_shadow`` makes it."""

    def __init__(
        self,
        k: int,
        alpha: float,
        epsilon: float,
        threshold: float,
        disjoint: bool,
        seed: int | None,
    ) -> None:
        super().__init__(seed)
        self._options = k, alpha, epsilon, threshold
        self.disjoint = disjoint
        # By graph and root: its nodes and their scores.
        self._known: WeakKeyDictionary[Graph, dict[int, tuple[Any, Any]]] = WeakKeyDictionary()

    @property
    def plan(self) -> Hashable:
        """The options."""
        return "shadow by PageRank", *self._options, self.disjoint

    @property
    def extra_places(self) -> Mapping[str, str]:
        return {"score": "nodes"} if self.disjoint else {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _known=WeakKeyDictionary())

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
    ) -> PendingBatch[Subgraph]:
        """Starts a batch as ``Sampler.launch`` does; NotImplementedError for ``exclude``.

        It makes the batch before it returns. Roots that were met before are not walked from again.
        """
        _no_exclude(exclude)
        torch = _need_torch()
        given = Array._of_view(as_ids(seeds, "seeds", graph._device)).cpu()
        roots = torch.tensor(given.tolist(), dtype=torch.int64)
        around = self._sample_links(graph, roots.tolist())
        scores = [torch.from_numpy(score[1:]) for _, score in around]
        others = [torch.from_numpy(ids[1:]) for ids, _ in around]
        counts = torch.tensor([len(ids) for ids in others], dtype=torch.int64)
        first = torch.arange(len(roots))
        subgraph_ids = torch.cat([first, first.repeat_interleave(counts)])
        # The roots, then the others of each in turn.
        nodes = torch.cat([roots, *others])
        best = torch.tensor([int(score[0]) for _, score in around], dtype=torch.int64)
        share = (torch.cat([best, *scores]).double() / _ONE).float()
        device = _device_of(graph)
        dtype = getattr(torch, graph.dtype)
        nodes, seeds_there = nodes.to(device, dtype), roots.to(device, dtype)
        made: Subgraph
        if self.disjoint:
            made = _subgraph(
                graph, nodes, subgraph_ids.to(device), seeds_there, share, epoch, batch
            )
        else:
            made = _subgraph(graph, nodes, None, seeds_there, None, epoch, batch)
        return CompletedJob(made)

    def _sample_links(self, graph: Graph, roots: list[int]) -> list[tuple[Any, Any]]:
        known = self._known.setdefault(graph, {})
        missing = sorted({root for root in roots if root not in known})
        if missing:
            import numpy as np

            ids, relation = as_ids(np.array(missing, np.int64), "seeds"), graph._source
            found = page_ranks(relation._on_cpu(), ids, *self._options)
            # Copies, since one of a root must not keep those of all.
            starts, nodes, scores = (part.numpy() for part in found)
            for root, begin, end in zip(missing, starts[:-1], starts[1:], strict=True):
                known[root] = nodes[begin:end].copy(), scores[begin:end].copy()
        return [known[root] for root in roots]


def shadow_disjoint(
    *,
    fanouts: Sequence[int],
    replace: bool = False,
    prob: str | None = None,
    seed: int | None = None,
) -> DisjointShaDow:
    """ShaDow (Zeng et al., 2021), a subgraph for each root: hops around it, with all edges.

    A batch is a ``Subgraph``, whose subgraphs share neither nodes nor draws nor edges:
    ``batch.subgraph_ids`` [V], int64, has the root of each node, a place in the seeds. The roots
    are the first nodes, and a repeated seed is two roots. It needs torch.

    Parameters
    ----------
    fanouts : sequence of int
        Neighbors of each node that the hop before has reached first, innermost hop last; -1 takes
        all. The paper has 2 hops, and 20 nodes.
    replace : bool
        Draw with replacement, as the authors' code does.
    prob : str, optional
        The name of an edge array with weights to draw by. Edges of weight 0 are never drawn, but
        they are among the edges of a subgraph.
    seed : int, optional
        See ``PGSampler``: the draws are its draws with ``disjoint=True`` and ``frontier="new"``.

    Raises
    ------
    TypeError, ValueError
        For options of a wrong type or value.
    """
    return DisjointShaDow(
        PGSampler(fanouts, replace=replace, prob=prob, frontier="new", disjoint=True, seed=seed)
    )


def ppr_shadow(
    *,
    k: int = 200,
    alpha: float = _ALPHA,
    epsilon: float = 1e-6,
    threshold: float = 0.01,
    disjoint: bool = True,
    seed: int | None = None,
) -> PageRankShaDow:
    """ShaDow (Zeng et al., 2021) by PageRank: the nodes nearest to a root, with all edges.

    A node is near if walks from the root often end at it: walks follow edges against their
    direction, and end with the chance ``alpha`` at each step, and at a node without in-edges. The
    chances are approximate, by pushes (Andersen et al., 2006) of integers: nothing is random, and
    they are the same on every machine. The sampler stores the result of a root as long as the graph
    lives.

    A batch is a ``Subgraph`` with ``batch.subgraph_ids`` [V], int64, as ``shadow_disjoint`` has
    them; ``extra["score"]`` [V] has the chance of each node, float32. It needs torch.

    Parameters
    ----------
    k : int
        The largest number of nodes of a root, with itself; the paper has 200.
    alpha : float
        In [0.001, 1]. The default is the paper's 0.15 for a walk that moves only at every other
        step.
    epsilon : float
        In [1e-12, 1]: pushes end where each node has less than this left for each of its in-edges;
        scores are too small by the rest. The time grows with its inverse.
    threshold : float
        In [0, 1]: nodes with less than this fraction of the best score, without the root's, are
        left out.
    disjoint : bool
        Each root has its own subgraph. False: one subgraph of all nodes.
    seed : int, optional
        Has no effect.

    Raises
    ------
    TypeError, ValueError
        For options of a wrong type or value.
    """
    return PageRankShaDow(
        integer(k, "k", 1, _MOST),
        finite(alpha, "alpha", 1e-3, 1),
        finite(epsilon, "epsilon", 1e-12, 1),
        finite(threshold, "threshold", 0, 1),
        boolean(disjoint, "disjoint"),
        seed,
    )


def _subgraph(
    graph: Graph,
    nodes: torch.Tensor,
    subgraph_ids: torch.Tensor | None,
    roots: torch.Tensor,
    scores: torch.Tensor | None,
    epoch: int,
    batch: int,
) -> Subgraph:
    """All edges between the nodes, of one tree where there are trees; roots are the first."""
    import torch

    from pygsampler._batch.induced_edges import induced_edges
    from pygsampler._batch.repeated_seeds import unique_by_first

    place = torch.arange(len(roots), device=nodes.device)
    if subgraph_ids is None:
        nodes, of_nodes = unique_by_first(nodes)
        place = of_nodes[: len(roots)]
    else:
        subgraph_ids = subgraph_ids.long()
    edges = induced_edges(graph, nodes, subgraph_ids)
    ends = torch.bincount(edges.col.long(), minlength=len(nodes)).cumsum(0)
    indptr = torch.cat([ends.new_zeros(1), ends]).to(nodes.dtype)
    fields = {
        "input_nodes": nodes,
        "output_nodes": roots,
        "output_index": place.to(nodes.dtype),
        "subgraph_ids": subgraph_ids,
        "blocks": (Block._of_arrays(indptr, edges.row, edges.edge, nodes, nodes),),
    }
    extra = {} if scores is None else {"score": scores.to(nodes.device)}
    return Subgraph._of_fields(fields, epoch, batch, extra=extra)


def _device_of(graph: Graph) -> torch.device:
    import torch

    return torch.device(graph.device)


def _no_exclude(exclude: Any) -> None:
    if exclude is not None:
        raise NotImplementedError(f"exclude: expected None for ShaDow, got {describe(exclude)}")


def _need_torch() -> Any:
    try:
        import torch
    except ImportError:
        raise ImportError("shadow: expected torch, found none; pip install torch") from None
    return torch
