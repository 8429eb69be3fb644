"""``random_walk``, ``node2vec_random_walk`` and ``pack_traces``, as ``dgl.sampling`` has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from dgl.sampling import randomwalks

from pygsampler._engine.checks import describe, integer
from pygsampler.dgl.graph import check_graph, joint_of, walk_graph
from pygsampler.dgl.homogeneous import TYPES, HomogeneousIds
from pygsampler.dgl.options import array_name
from pygsampler.dgl.walk_arguments import (
    DGLValueError,
    WalkSeed,
    as_dgl_errors,
    is_hetero,
    nodes_of,
    pattern_of,
    starts_of,
    steps_of,
    walk_seed,
    walks_of,
)
from pygsampler.walks.random_walk import RandomWalk

__all__ = ["node2vec_random_walk", "pack_traces", "random_walk"]

# Ours may stand under this name by the time that it is needed.
_pack_by_dgl = randomwalks.pack_traces
# Up to this many ids NumPy subtracts faster than torch starts.
_FEW = 1 << 14


def random_walk(
    g: Any,
    nodes: Any,
    *,
    metapath: Sequence[Any] | None = None,
    length: int | None = None,
    prob: str | None = None,
    restart_prob: Any = None,
    return_eids: bool = False,
    seed: int | None = None,
) -> tuple[torch.Tensor, ...]:
    """Returns random walks from ``nodes`` along out-edges, like ``dgl.sampling.random_walk``.

        traces, types = pygsampler.dgl.random_walk(g, torch.arange(1000), length=10)

    Parameters
    ----------
    g : dgl.DGLGraph
        With several node or edge types it takes a ``metapath``.
    nodes : int32 or int64, shape [N], or a sequence of int
        The first node of each walk, on the device of ``g``, or on any GPU for a graph in
        page-locked host memory; of the node type that the metapath begins with. A repeated node has
        several walks.
    metapath : list of edge types, optional
        The edge type of each step, as ``"follow"`` or ``("user", "follow", "user")``. It may have
        any length if a pattern of at most 64 types repeats.
    length : int, optional
        Steps of a walk where there is no metapath; with one it is ignored, as in DGL.
    prob : str, optional
        The name of an edge array of shape [E]: bool, integers, float32 or float64. An edge is taken
        by its weight, finite and >= 0, among those of its node and type. Edges of types without
        such an array are equal.
    restart_prob : float or tensor of shape [steps], optional
        The chance that a walk ends before a step, the first included; a tensor has one for each
        step. Nothing restarts: the name is DGL's.
    return_eids : bool
        Return the edges, too.
    seed : int, optional
        With a seed the walks are a function of (graph, arguments, seed, nodes). By default each
        call draws one number of PyTorch's CPU generator: no call repeats another, except after
        ``torch.manual_seed``.

    Returns
    -------
    traces : tensor, shape [N, steps + 1], dtype ``g.idtype``
        The nodes of each walk, each an id of its own type; -1 after the end.
    eids : tensor, shape [N, steps], dtype ``g.idtype``
        With ``return_eids``: the ids of the edges, each of its own type; -1 likewise.
    types : tensor on the CPU, shape [steps + 1], dtype ``g.idtype``
        The id of the node type at each place of a walk.

    Raises
    ------
    ValueError, IndexError
        For impossible values, chances outside [0, 1] and ids that are no nodes; errors that DGL
        raises too are also ``dgl.DGLError``.
    TypeError
        For an argument of another type or dtype.
    NotImplementedError
        For blocks, and for metapaths of more than 64 steps without such a pattern.
    CudaError
        When the GPU fails.

    Notes
    -----
    Walks follow DGL's rule: an edge is drawn uniformly, or by weight, among the out-edges of the
    step's type, and a walk ends if there is none. A node whose weights are all 0 also ends it; DGL
    leaves that case open. Walks on a GPU and on the CPU are equal.

    The graph by its out-edges is built at the first call, and cached as long as ``g`` lives; a
    heterogeneous graph is merged into a homogeneous graph for each set of edge types. Tables of
    weights are built as ``PGSampler`` of this module says.

    Chances that differ from step to step are drawn before the walks, which are cut then: the end of
    a walk does not depend on its nodes.
    """
    check_graph(g)
    path, types = steps_of(g, metapath, length)
    steps, stop, chances = len(path), 0.0, None
    if restart_prob is not None:
        stop, chances = _chances(restart_prob, steps)
    ids = nodes_of(g, nodes)
    joint = joint_of(g, sorted(set(path))) if is_hetero(g) else None
    options: dict[str, Any] = {"prob": prob, "stop": stop}
    _check_prob(g, prob, joint)
    if joint is None:
        starts = ids
    else:
        starts = starts_of(g, joint, ids, types[0])
        if len(joint.types) > 1:
            kind = {etype: i for i, etype in enumerate(joint.types)}
            options |= {"edge_types": TYPES, "metapath": [kind[t] for t in pattern_of(path)]}
    numbers = walk_seed(ids, seed)
    with as_dgl_errors():
        graph = walk_graph(g, ids.device, prob, joint.types if joint else ())
        walks = walks_of(
            RandomWalk, graph, starts, numbers, length=steps, edge_ids=return_eids, **options
        )
    traces, eids = walks.per_step(), walks.per_step_edges() if return_eids else None
    if joint is not None:
        traces = _less(traces, [joint.first_node[t] for t in types])
        eids = None if eids is None else _less(eids, [joint.first_edge[t] for t in path])
    if chances is not None:
        traces, eids = _end_by_chance(traces, eids, chances, numbers)
    # A single edge type has the number 0: zeros are much faster than reading a list.
    kinds = (
        torch.tensor(types, dtype=g.idtype)
        if any(types)
        else torch.zeros(len(types), dtype=g.idtype)
    )
    if eids is None:
        return _by_walk(traces, g.idtype), kinds
    return _by_walk(traces, g.idtype), _by_walk(eids, g.idtype), kinds


def node2vec_random_walk(
    g: Any,
    nodes: Any,
    p: float,
    q: float,
    walk_length: int,
    prob: str | None = None,
    return_eids: bool = False,
    *,
    seed: int | None = None,
) -> Any:
    """node2vec's walks from ``nodes``: as ``dgl.sampling.node2vec_random_walk``, on a GPU too.

    Parameters
    ----------
    g : dgl.DGLGraph
        A homogeneous graph.
    nodes : int32 or int64, shape [N], or a sequence of int
        As for ``random_walk``.
    p, q : float
        Return and in-out, above 0. Having come from t, an edge to x has its weight times 1/p where
        x is t, 1 where ``g`` has an edge from x to t, and 1/q else.
    walk_length : int
        Steps of a walk.
    prob : str, optional
        As for ``random_walk``.
    return_eids : bool
        Return the edges, too.
    seed : int, optional
        As for ``random_walk``.

    Returns
    -------
    traces : tensor, shape [N, walk_length + 1], dtype ``g.idtype``
        The nodes of each walk, -1 after its end.
    eids : tensor, shape [N, walk_length], dtype ``g.idtype``
        Only with ``return_eids``, in a pair: the ids of the edges, -1 likewise.

    Raises
    ------
    ValueError, IndexError, TypeError, CudaError
        As ``random_walk``.
    NotImplementedError
        For a heterograph.
    """
    check_graph(g)
    if is_hetero(g):
        raise NotImplementedError(
            f"g: expected a homogeneous graph for node2vec, got {len(g.ntypes)} node types and "
            f"{len(g.etypes)} edge types; dgl.to_homogeneous(g) makes one of a heterograph"
        )
    steps = integer(walk_length, "walk_length", 0, 1 << 20)
    ids = nodes_of(g, nodes)
    _check_prob(g, prob, None)
    numbers = walk_seed(ids, seed)
    options = {"prob": prob, "p": p, "q": q, "edge_ids": return_eids}
    with as_dgl_errors():
        graph = walk_graph(g, ids.device, prob, second=(p, q) != (1, 1))
        walks = walks_of(RandomWalk, graph, ids, numbers, length=steps, **options)
    traces = _by_walk(walks.per_step(), g.idtype)
    return (traces, _by_walk(walks.per_step_edges(), g.idtype)) if return_eids else traces


def pack_traces(
    traces: torch.Tensor, types: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """The nodes of walks one after another, without the padding: as ``dgl.sampling.pack_traces``.

    Parameters
    ----------
    traces : tensor, shape [N, S]
        Walks as ``random_walk`` gives them, on any device; a row ends before its first -1.
    types : tensor, shape [S]
        The type of each place, as ``random_walk`` gives them.

    Returns
    -------
    concat_vids : tensor, shape [K], dtype of ``traces``
    concat_types : tensor, shape [K], dtype of ``types``
        The type of each of them.
    lengths : int64 tensor, shape [N]
        How many nodes each walk has.
    offsets : int64 tensor, shape [N]
        Where its first one stands. All are where ``traces`` are.

    Raises
    ------
    TypeError, ValueError
        For what is no tensor, and other shapes.
    """
    for name, given, dimensions in (("traces", traces, 2), ("types", types, 1)):
        if not isinstance(given, torch.Tensor):
            raise TypeError(f"{name}: expected a tensor, got {describe(given)}")
        if given.dim() != dimensions:
            raise DGLValueError(
                f"{name}: expected {dimensions} dimensions, got shape {tuple(given.shape)}"
            )
    if len(types) != traces.shape[1]:
        raise DGLValueError(
            f"types: expected one for each of {traces.shape[1]} places of a walk, got {len(types)}"
        )
    on_host = traces.is_cpu and types.is_cpu and traces.numel()
    if on_host and traces.dtype == types.dtype in (torch.int32, torch.int64):
        # One pass in C++: torch's operators below take twice as long.
        return _pack_by_dgl(traces.contiguous(), types.contiguous())  # type: ignore[no-any-return]
    inside = (traces != -1).cummin(1).values if traces.numel() else traces != -1
    lengths = inside.sum(1)
    kinds = types.to(traces.device).expand(traces.shape)[inside]
    return traces[inside], kinds, lengths, lengths.cumsum(0) - lengths


def _check_prob(g: Any, prob: Any, joint: HomogeneousIds | None) -> None:
    """Raises an error, as DGL does, unless ``prob`` has one number for each edge."""
    if array_name(prob) is None:
        return
    for etype in [g.canonical_etypes[t] for t in (joint.types if joint else (0,))]:
        data = g.edges[etype].data
        if prob in data and data[prob].dim() != 1:
            raise DGLValueError(
                f"prob: expected g.edges[{etype!r}].data[{prob!r}] of one dimension, got shape "
                f"{tuple(data[prob].shape)}"
            )


def _chances(restart_prob: Any, steps: int) -> tuple[float, torch.Tensor | None]:
    """The chance to end before each step: one, or a tensor where they differ."""
    if isinstance(restart_prob, float):
        # A chance of 1 is DGL's to refuse too: no walk would have a step.
        if not 0 <= restart_prob < 1:
            raise DGLValueError(f"restart_prob: expected a number in [0, 1), got {restart_prob}")
        return restart_prob, None
    if not isinstance(restart_prob, torch.Tensor):
        raise TypeError(f"restart_prob: expected a float or a tensor, got {describe(restart_prob)}")
    if restart_prob.shape != (steps,):
        raise DGLValueError(
            f"restart_prob: expected one for each of {steps} steps, got shape "
            f"{tuple(restart_prob.shape)}"
        )
    chances = restart_prob.detach().to("cpu", torch.float64)
    wrong = ~((chances >= 0) & (chances <= 1))
    if wrong.any():
        at = int(wrong.nonzero()[0])
        raise DGLValueError(f"restart_prob[{at}]: expected a number in [0, 1], got {chances[at]}")
    if not steps or bool((chances == chances[0]).all()):
        return (float(chances[0]) if steps else 0.0), None
    return 0.0, chances


def _less(ids: torch.Tensor, first: list[int]) -> torch.Tensor:
    """Converts ids of the merged graph to ids within each type, shape [steps, walks]."""
    if not any(first):
        return ids
    if ids.is_cpu and ids.numel() <= _FEW:
        values = ids.numpy()
        return torch.from_numpy(
            np.where(values < 0, values, values - np.array(first, values.dtype)[:, None])
        )
    offsets = torch.tensor(first, dtype=ids.dtype).to(ids.device).unsqueeze(1)
    return torch.where(ids < 0, ids, ids - offsets)


def _end_by_chance(
    traces: torch.Tensor, eids: torch.Tensor | None, chances: torch.Tensor, stop_seed: WalkSeed
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Walks, [steps + 1, walks], that end before each step with its chance.

    A walk takes step s where a number in [0, 1) of its own is below the product of 1 - chance of
    all steps up to it.
    """
    going = (1 - chances).cumprod(0)
    drawn = torch.rand(traces.shape[1], dtype=torch.float64, generator=stop_seed.generator())
    steps = torch.searchsorted(-going, -drawn).to(traces.device)
    step = torch.arange(len(chances), device=traces.device).unsqueeze(1)
    ended = step >= steps
    after = torch.cat([ended.new_zeros(1, len(drawn)), ended])
    return traces.masked_fill(after, -1), None if eids is None else eids.masked_fill(ended, -1)


def _by_walk(by_step: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A row for each walk, contiguous as DGL's."""
    return by_step.t().to(dtype).contiguous()
