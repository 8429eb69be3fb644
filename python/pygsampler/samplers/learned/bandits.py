"""GCN-BS and Thanos: bandits that learn which edges of a node are worth a draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pygsampler._arrays.array_input import to_numpy
from pygsampler._engine.checks import describe, finite, integer
from pygsampler._graph.graph import Graph as Stored
from pygsampler._graph.graph import is_homogeneous
from pygsampler.programs import program
from pygsampler.samplers.hop_order import innermost_first
from pygsampler.samplers.learned.sampler import LearnedSampler, finite_values

if TYPE_CHECKING:
    import numpy as np

    from pygsampler.programs import GraphMatrix, Matrix, NodeList, Program

    Values = np.ndarray[Any, np.dtype[np.float64]]

__all__ = ["Bandit", "exp3", "exp3m", "gcn_bs", "thanos"]


@program
def exp3(
    A: GraphMatrix,
    seeds: NodeList,
    *,
    fanouts: Sequence[int],
    eta: float,
    log_weights: str = "log_w",
) -> list[Matrix]:
    """The draws of GCN-BS and Thanos: K edges by weights that were learned, and by chance.

    A destination of d > K edges draws K times, with replacement, by
    q = (1 - eta) w / (the sum of its w) + eta / d; one of fewer has all of its edges.

    Parameters
    ----------
    fanouts : sequence of int
        Draws of each destination, outermost hop first; -1 takes all edges. The papers have 3 to 10.
    eta : float
        The share of uniform draws, in [0, 1].
    log_weights : str
        The name of the edge array with log w.

    Notes
    -----
    ``block.edge_data["w"]`` is 1 / (K q) of each draw, and 1 of edges that are all there: sums by
    it are unbiased.
    """
    blocks: list[Any] = []
    for K in innermost_first(fanouts, "fanouts"):
        C = A[:, seeds]
        d = C.count(axis=0)
        if K < 0:
            B = C.spread(d > 0, axis=0)
        else:
            logs = C.edata[log_weights]
            # The largest is 1, so that no sum is too large.
            w = logs.sub(logs.max(axis=0), axis=0).exp()
            q = w.mul((1 - eta) / w.sum(axis=0), axis=0).add(eta / d, axis=0)
            few = C.spread(d <= K, axis=0)
            many = q.where(~few)
            B = 1 / (many.individual_sample(K, many, replace=True) * K)
            B = B.merge(few.where(few))
        blocks.insert(0, B)
        seeds = seeds | B.row()
    return blocks


@program
def exp3m(
    A: GraphMatrix,
    seeds: NodeList,
    *,
    fanouts: Sequence[int],
    eta: float,
    log_weights: str = "log_w",
) -> list[Matrix]:
    """The draws of GCN-BS and Thanos without repetitions: K distinct edges by learned weights.

    A destination of d > K edges has exactly K of them, by dependent rounding, each edge with the
    chance p = K ((1 - eta) w' / (the sum of its w') + eta / d). w' is w, bounded so that p is at
    most 1. A destination of at most K edges has all.

    Parameters
    ----------
    fanouts, eta, log_weights
        As for ``exp3``.

    Notes
    -----
    ``block.edge_data["w"]`` is 1 / p of each edge, and 1 of edges that are all there: sums by it
    are unbiased. EXP3.M: Uchiya, Nakamura, Kudo, 2010; DepRound: Gandhi et al., 2006.
    """
    blocks: list[Any] = []
    for K in innermost_first(fanouts, "fanouts"):
        C = A[:, seeds]
        d = C.count(axis=0)
        if K < 0:
            B = C.spread(d > 0, axis=0)
        else:
            logs = C.edata[log_weights]
            # Above 0 as a double: those that are capped leave their part to all others.
            w = logs.sub(logs.max(axis=0), axis=0).maximum(-600).exp()
            few = C.spread(d <= K, axis=0)
            # Each edge has at least the probability u, and all edges share the rest of K, at most
            # 1 - u each, so that p = 1 for capped edges.
            u = K * eta / d
            p = w.where(~few).cap(K * (1 - eta) / (1 - u))
            p = p.mul(1 - u, axis=0).add(u, axis=0).minimum(1)
            B = (1 / p.dependent_sample()).merge(few.where(few))
        blocks.insert(0, B)
        seeds = seeds | B.row()
    return blocks


class Bandit(LearnedSampler):
    """GCN-BS or Thanos, with the weights of edges that it learns; their functions return it.

    The weights are ``log_w``, float64, by the ids of edges; ``LearnedSampler`` says how they are
    updated, and how a loader uses them.

    Parameters
    ----------
    kind : str
        ``"gcn_bs"`` or ``"thanos"``.
    graph : Graph
        The graph whose edges have weights.
    program : Program
        The program that samples by the weights.
    fanouts, delta, max_reward, method
        The arguments of ``gcn_bs``.
    restart : int
        The argument of ``thanos``.
    """

    def __init__(
        self,
        kind: str,
        graph: Stored,
        program: Program,
        fanouts: Sequence[int],
        *,
        delta: float,
        max_reward: float,
        restart: int = 0,
        method: str = "exp3",
    ) -> None:
        import numpy as np

        if not is_homogeneous(graph):
            raise TypeError(f"graph: expected a pygsampler.Graph, got {describe(graph)}")
        host = graph._on_cpu()
        ids = host.edge_ids
        edges = host.num_edges
        if ids is not None and edges:
            edges = max(edges, int(ids.numpy().max()) + 1)
        super().__init__(program, edges={"log_w": np.zeros(edges)})
        self._kind, self._fanouts, self._method = kind, list(fanouts), method
        self._delta, self._max_reward = delta, max_reward
        self._restart = restart
        degrees = np.zeros(host.num_nodes, np.int64)
        rows = np.diff(host.indptr.numpy())
        degrees[: len(rows)] = rows
        self._degrees = degrees
        self._sizes = host.num_nodes, host.num_edges

    def sampled_graph(self, graph: Stored) -> Stored:
        """The graph with the weights; ValueError for one of other sizes than the one it is for."""
        nodes, edges = self._sizes
        if (graph.num_nodes, graph.num_edges) != (nodes, edges):
            raise ValueError(
                f"graph: expected the one of {nodes} nodes and {edges} edges that is learned "
                f"about, got {graph!r}"
            )
        return super().sampled_graph(graph)

    @property
    def log_weights(self) -> Values:
        """log w of each edge, by its id: a copy, float64, shape [edges]."""
        found: Values = self.state_dict()["log_w"]
        return found

    def rewards(self, batch: Any, hop: int, h: Any, a: Any = None) -> Values:
        """Returns the paper's rewards of the draws of a block.

        Parameters
        ----------
        batch : MiniBatch
            A batch of this sampler.
        hop : int
            The position of one of its blocks, from 0, the outermost.
        h : array or tensor, shape [num_src_nodes, ...]
            The row that each source has sent to its destinations: its features for the first block,
            the output of the layer before for another block.
        a : array or tensor, shape [num_edges], optional
            The coefficient of each edge in the model; 1 / d of a destination of d edges in the
            graph, by default: the mean.

        Returns
        -------
        numpy.ndarray
            float64, shape [num_edges]. GCN-BS: a**2 |h|**2 / q**2, where q is p / K with EXP3.M.
            Thanos: 2 (a h) . m - |a h|**2, where m is the mean of h over the draws of the
            destination, by a.

        Raises
        ------
        TypeError, ValueError
            For other shapes, and numbers that are not finite.
        """
        import numpy as np

        block = self._block(batch, hop)
        src, dst, _, d, q = self._edges(block, hop)
        shape = getattr(h, "shape", ())
        if not shape or shape[0] != block.num_src_nodes:
            raise ValueError(
                f"h: expected a row for each of {block.num_src_nodes} sources, got shape "
                f"{tuple(shape)}"
            )
        rows = finite_values(h, "h", tuple(shape)).reshape(shape[0], -1)
        factor = 1 / d if a is None else finite_values(a, "a", (len(src),))
        if self._kind == "gcn_bs":
            size = (rows * rows).sum(axis=1)
            found: Values = factor**2 * size[src] / q**2
            return found
        sent = factor[:, None] * rows[src]
        heard = np.zeros((block.num_dst_nodes, rows.shape[1]))
        np.add.at(heard, dst, sent)
        total = np.bincount(dst, factor, minlength=block.num_dst_nodes)
        mean = heard / np.where(total == 0, 1, total)[:, None]
        found = 2 * (sent * mean[dst]).sum(axis=1) - (sent * sent).sum(axis=1)
        return found

    def update(self, batch: Any, rewards: Sequence[Any]) -> int:
        """Learns from a batch, from the next one on, and gives the version.

        An edge's log w grows by delta / d times each of its rewards, GCN-BS divides that by q, or
        with EXP3.M by p, and no draw adds more than ``max_reward``, nor, of Thanos, less than 0.
        Draws of one edge add up, in the order of the blocks and of their edges. Destinations whose
        edges were all taken learn nothing, nor does with EXP3.M an edge with p = 1.

        Parameters
        ----------
        batch : MiniBatch
            Of this sampler; its weights tell the chances q that it was drawn by.
        rewards : sequence of arrays or tensors, each of shape [num_edges]
            For each of its blocks, of ``rewards`` or others; None for a block that is not learned
            from.

        Raises
        ------
        TypeError, ValueError
            For other numbers of blocks or edges, and numbers that are not finite.
        """
        import numpy as np

        if len(rewards) != len(self._fanouts):
            raise ValueError(
                f"rewards: expected one for each of {len(self._fanouts)} blocks, got {len(rewards)}"
            )
        ids, gains = [np.zeros(0, np.int64)], [np.zeros(0)]
        for hop, given in enumerate(rewards):
            block = self._block(batch, hop)
            if given is None:
                continue
            _, _, edges, d, q = self._edges(block, hop)
            reward = finite_values(given, f"rewards[{hop}]", (len(edges),))
            gain = self._delta / d * reward
            least = 0.0
            learns = d > self._fanouts[hop] if self._fanouts[hop] >= 0 else d < 0
            chance = q
            if self._method == "exp3m":
                chance = q * max(self._fanouts[hop], 1)
                learns = learns & (chance < 1)
            if self._kind == "gcn_bs":
                gain, least = gain / chance, -np.inf
            ids.append(edges[learns])
            gains.append(np.clip(gain, least, self._max_reward)[learns])
        drawn, place = np.unique(np.concatenate(ids), return_inverse=True)
        more = np.bincount(place, np.concatenate(gains), minlength=len(drawn))
        state = self._state
        with state.lock:
            self._settle()
            if self._restart and (state.version + 1) % self._restart == 0:
                state.edges["log_w"][...] = 0
                return self._changed()
            state.edges["log_w"][drawn] += more
            return self._changed(drawn)

    def _block(self, batch: Any, hop: int) -> Any:
        blocks = batch.blocks
        if len(blocks) != len(self._fanouts):
            raise ValueError(f"batch: expected {len(self._fanouts)} blocks, got {len(blocks)}")
        return blocks[integer(hop, "hop", 0, len(blocks) - 1)]

    def _edges(self, block: Any, hop: int) -> tuple[Any, ...]:
        """Returns each edge's source, destination, id, destination's degree, and q."""
        import numpy as np

        indptr, src, edges, nodes = (
            to_numpy(part).astype(np.int64, copy=False)
            for part in (block.indptr, block.indices, block.edge_ids, block.dst_nodes)
        )
        dst = np.repeat(np.arange(len(nodes)), np.diff(indptr))
        d = self._degrees[nodes][dst]
        weights = to_numpy(block.edge_data["w"]).astype(np.float64)
        return src, dst, edges, d, 1 / (weights * max(self._fanouts[hop], 1))


def gcn_bs(
    graph: Stored,
    *,
    fanouts: Sequence[int],
    eta: float = 0.4,
    delta: float = 0.01,
    max_reward: float = 1.0,
    method: str = "exp3",
    seed: int | None = None,
) -> Bandit:
    """GCN-BS (Liu et al., 2020): a bandit for each node, which makes sums less noisy.

    Edges are drawn as ``exp3`` or ``exp3m`` says. After a training step ``update`` rewards the
    drawn edges:

        sampler = samplers.learned.gcn_bs(graph, fanouts=[10, 10])
        for batch in DataLoader(graph, train, sampler, batch_size=1024, prefetch=0):
            ...
            sampler.update(batch, [sampler.rewards(batch, 0, x), sampler.rewards(batch, 1, h)])

    Parameters
    ----------
    graph : Graph
        The graph whose edges get weights: 8 bytes for each edge and each node.
    fanouts, eta
        As for ``exp3``.
    delta : float
        The rate of learning, >= 0.
    max_reward : float
        The most that a draw adds to log w, >= 0, as in the authors' code.
    method : {"exp3", "exp3m"}
        Draws with replacement, or K distinct edges: the papers' variant ".M", as ``exp3m`` says.
    seed : int, optional
        See ``PGSampler``.

    Returns
    -------
    Bandit

    Notes
    -----
    Sums by the batches' weights are unbiased with either method. All hops share the weights.
    """
    return Bandit(
        "gcn_bs",
        graph,
        _bandit_program(fanouts, eta, seed, method),
        fanouts,
        delta=finite(delta, "delta", 0),
        max_reward=finite(max_reward, "max_reward", 0),
        method=method,
    )


def thanos(
    graph: Stored,
    *,
    fanouts: Sequence[int],
    eta: float = 0.2,
    delta: float = 0.1,
    max_reward: float = 1.0,
    restart: int = 2000,
    method: str = "exp3",
    seed: int | None = None,
) -> Bandit:
    """Thanos (Zhang et al., 2021): GCN-BS with a reward for what is near to the mean, and restarts.

    It is used as ``gcn_bs`` is; a model of the paper's takes the plain mean over draws, which is
    biased on purpose.

    Parameters
    ----------
    graph, fanouts, eta, delta, max_reward, method, seed
        As for ``gcn_bs``.
    restart : int
        The weights are 1 again after so many updates: since embeddings change, what was learned
        long ago misleads. 0: never.

    Returns
    -------
    Bandit
    """
    return Bandit(
        "thanos",
        graph,
        _bandit_program(fanouts, eta, seed, method),
        fanouts,
        delta=finite(delta, "delta", 0),
        max_reward=finite(max_reward, "max_reward", 0),
        restart=integer(restart, "restart", 0),
        method=method,
    )


def _bandit_program(fanouts: Any, eta: float, seed: int | None, method: str) -> Program:
    if method not in ("exp3", "exp3m"):
        raise ValueError(f"method: expected 'exp3' or 'exp3m', got {describe(method)}")
    if isinstance(fanouts, (str, bytes)) or not isinstance(fanouts, Sequence):
        raise TypeError(f"fanouts: expected a list of int, got {describe(fanouts)}")
    finite(eta, "eta", 0, 1)
    rule = exp3m if method == "exp3m" else exp3
    return rule(fanouts=list(fanouts), eta=eta, seed=seed)
