"""Cluster-GCN whose seeds are numbers of clusters, so that loaders deal those."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from pygsampler._arrays.array import Array
from pygsampler._arrays.ids import as_ids
from pygsampler._engine.checks import describe
from pygsampler._sampling.pending import PendingBatch
from pygsampler._sampling.sampler import check_graph
from pygsampler.programs.program_sampler import ProgramSampler
from pygsampler.samplers.subgraphs import cluster_gcn

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pygsampler._graph.graph import Graph

__all__ = ["ClusterGCN", "cluster_gcn_parts"]


class ClusterGCN(ProgramSampler[Any]):
    """Cluster-GCN whose seeds are numbers of clusters; ``cluster_gcn_parts`` returns it.

    Parameters
    ----------
    part : numpy.ndarray of integers, shape [num_nodes]
        The number of each node's cluster.
    seed : int or None
        See ``PGSampler``.
    """

    edge_values = "w"

    def __init__(self, part: Any, seed: int | None) -> None:
        import numpy as np

        super().__init__(cluster_gcn(seed=seed))
        # By cluster, in ascending order within each.
        self._nodes = np.argsort(part, kind="stable")
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(part))])
        self._digest = hashlib.blake2b(part.tobytes(), digest_size=16).hexdigest()

    @property
    def num_parts(self) -> int:
        """The number of clusters: one more than the largest of their numbers."""
        return len(self._starts) - 1

    @property
    def plan(self) -> Hashable:
        """The program's, and a digest of the clusters."""
        return "clusters", self._program.plan, self._digest

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
    ) -> PendingBatch[Any]:
        """Starts a batch of the subgraph of some clusters, as ``Sampler.launch`` does.

        Parameters
        ----------
        seeds : int32 or int64, shape [N]
            Numbers of clusters.
        graph, epoch, batch, exclude, threads, form, asynchronous
            The arguments of ``Sampler.launch``.
        """
        job: PendingBatch[Any] = self._program.launch(
            *self._program_inputs(graph, seeds),
            epoch=epoch,
            batch=batch,
            exclude=exclude,
            threads=threads,
            form=form,
            asynchronous=asynchronous,
        )
        return job

    def _program_inputs(self, graph: Graph, seeds: Any) -> tuple[Any, Any]:
        return graph, self._cluster_nodes(graph, seeds)

    def _cluster_nodes(self, graph: Graph, seeds: Any) -> Any:
        """The nodes of some clusters, one cluster behind the other."""
        import numpy as np

        check_graph(graph)
        if graph.num_nodes != len(self._nodes):
            raise ValueError(
                f"graph: expected the one that was cut, of {len(self._nodes)} nodes, got one of "
                f"{graph.num_nodes}"
            )
        given = Array._of_view(as_ids(seeds, "seeds", graph._device)).cpu()
        parts = np.asarray(given.numpy(), np.int64)
        if len(parts) and not 0 <= parts.min() <= parts.max() < self.num_parts:
            wrong = parts[(parts < 0) | (parts >= self.num_parts)][0]
            raise IndexError(
                f"seeds: expected numbers of clusters below {self.num_parts}, got {wrong}"
            )
        starts = self._starts
        return np.concatenate(
            [self._nodes[:0], *(self._nodes[starts[i] : starts[i + 1]] for i in parts)]
        )

    def __repr__(self) -> str:
        return f"cluster_gcn_parts({self.num_parts} clusters, seed={self.seed})"


def cluster_gcn_parts(part: Any, *, seed: int | None = None) -> ClusterGCN:
    """Cluster-GCN (Chiang et al., 2019) for loaders: the seeds of a call are clusters.

    A batch is that of ``cluster_gcn`` of all nodes of these clusters, one cluster behind the
    other, with the edges between them too. A loader deals the clusters:

        part = samplers.clusters(graph, 200)
        sampler = samplers.cluster_gcn_parts(part)
        DataLoader(graph, range(sampler.num_parts), sampler, batch_size=10, shuffle=True)

    Parameters
    ----------
    part : array or tensor of integers >= 0, shape [V]
        The cluster of each node: of ``clusters``, or of another cut of your own.
    seed : int, optional
        As ``PGSampler`` has it; a batch does not depend on it, what a loader shuffles does.

    Raises
    ------
    TypeError, ValueError
        For what are no such numbers.
    """
    import numpy as np

    if hasattr(part, "detach"):
        part = part.detach().cpu().numpy()
    cut = np.asarray(part)
    if cut.dtype.kind not in "iu" or cut.ndim != 1:
        raise TypeError(
            f"part: expected a vector of integers, one for each node, got {describe(part)} of "
            f"{cut.dtype} and shape {list(cut.shape)}"
        )
    if len(cut) and cut.min() < 0:
        raise ValueError(f"part: expected numbers >= 0, got {cut.min()}")
    if len(cut) and cut.max() >= len(cut):
        raise ValueError(
            f"part: expected at most a cluster for each of {len(cut)} nodes, got {cut.max()}"
        )
    return ClusterGCN(np.ascontiguousarray(cut, np.int64), seed)
