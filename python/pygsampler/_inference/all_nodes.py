"""``inference``: the outputs of all nodes of a graph, layer by layer."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from pygsampler._engine.checks import describe, integer
from pygsampler._engine.progress import Progress, progress_callback
from pygsampler._graph.graph import Graph

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

__all__ = ["inference"]


def inference(
    model: Any,
    graph: Graph,
    features: Any,
    *,
    edge_data: Mapping[str, Any] | None = None,
    out: Any = None,
    batch_size: int | None = None,
    device: Any = None,
    memory: int | None = None,
    resume: str | os.PathLike[str] | None = None,
    group: Any = None,
    progress: Progress = True,
) -> Any:
    """Returns a model's output for every node of a graph, from all in-neighbors.

    The model runs layer by layer: each layer computes a row for each node, once, before the next
    layer begins. A layer runs on ranges of nodes with all their in-edges, which are slices of the
    graph's CSC: nothing is sampled.

    The model is in evaluation mode, without gradients, until this returns or raises: dropout is
    off, and batch norms use their running statistics.

    Parameters
    ----------
    model : torch.nn.Module, function or list
        A model of PyG: one of ``torch_geometric.nn.models``, or any module whose forward takes
        ``(x, edge_index)``, also by ``to_hetero`` or with ``HeteroConv``. Or a custom layer
        ``f(block, x)``, or a list of layers, one after the other: functions and modules ``f(block,
        x)`` or ``f(block, x_src, x_dst)``, PyG's layers, and functions ``f(x)`` that work row by
        row, such as ``torch.relu``. In ``f(block, x)`` the destinations' rows are
        ``x[:block.num_dst_nodes]``; in ``f(block, x_src, x_dst)`` they are ``x_dst``, and ``x_src``
        may have rows of all nodes. For a heterogeneous graph layers ``f(blocks, x)`` take and
        return mappings, of edge types to blocks and of node types to rows, as they do in training,
        and functions ``f(x)`` take the latter.
    graph : Graph
        On the CPU, mapped from a file, or on a GPU.
    features : tensor, array, Features or path, or mapping of node types to these
        A row for each node. Arrays that are mapped, and .npy files by their path, may be larger
        than memory.
    edge_data : mapping of str to arrays, optional
        Further arguments of a model of PyG by name, such as ``edge_weight``: a row for each edge,
        by edge id, or the name of an array of ``graph.edata``. For a heterogeneous graph mappings
        of edge types to these.
    out : tensor, NumPy array or path of a .npy file, optional
        The place of the result; its dtype may be another one than the model's. A file appears
        when it is complete. For a heterogeneous graph a mapping of node types.
    batch_size : int, optional
        Nodes per range; by default as many as ``memory`` has room for. Sums over neighbors do not
        depend on it; products of matrices may differ by rounding.
    device : torch.device or str, optional
        The device that layers run on; the model's by default, or else that of the features.
    memory : int, optional
        A bound in bytes for rows of layers and of ranges on that device; half of what is free by
        default. Layers with more rows are in the host's memory, or in temporary files. The bound
        holds for models of ``torch_geometric.nn.models`` and lists; of other models all rows
        between two layers are in memory at once.
    resume : path, optional
        A folder for finished layers. A run that was stopped goes on after the last of them when it
        is called with the same folder, and gives the same bytes. Not for layers ``f(blocks, x)``.
    group : bool or torch.distributed.ProcessGroup, optional
        Processes that share the nodes, True for all: each calls this with the same arguments,
        computes the rows of a range of nodes in each layer, gets the rows of the others, and
        returns all. Each process has separate files ``out`` and ``resume``. Not for layers
        ``f(blocks, x)``.
    progress : bool or function
        True shows a bar of tqdm when the run takes more than two seconds; a function is called
        with the rows that are done and in all.

    Returns
    -------
    torch.Tensor, or out
        Shape [num_nodes, ...], on the device of the features. For a heterogeneous graph a dict of
        node types, the model's result.

    Raises
    ------
    TypeError, ValueError
        For arguments of another kind or shape, before any layer runs; for a ``resume`` folder of
        another model, graph or features.
    RuntimeError
        If another process of the group failed, with its error.
    OSError
        If a file has no room on its disk.

    Examples
    --------
    >>> embeddings = pygsampler.inference(model, graph, features, out="embeddings.npy")
    """
    try:
        import torch
    except ImportError:
        raise ImportError("inference: expected PyTorch, found none; pip install torch") from None

    from pygsampler._inference.layer_runs import InferenceRun, available_memory
    from pygsampler._inference.plan import InferencePlan, evaluation
    from pygsampler._inference.process_share import ProcessShare

    with ExitStack() as stack:
        share = None
        if group is not None and group is not False:
            share = stack.enter_context(ProcessShare(group))
        if not isinstance(graph, Graph):
            raise TypeError(
                f"graph: expected a pygsampler.Graph, got {describe(graph)}; "
                "Graph.from_pyg(data) and Graph.from_dgl(g) convert others"
            )
        if hasattr(graph, "partition"):
            raise TypeError(
                "graph: expected a whole graph, got a DistributedGraph; open the file that it was "
                "partitioned from, which each process maps, and pass group="
            )
        if batch_size is not None:
            batch_size = integer(batch_size, "batch_size", 1)
        if memory is not None:
            memory = integer(memory, "memory", 1)
        plan = InferencePlan(model, graph, features, edge_data, device)
        outputs = plan.outputs(out)
        if share is not None:
            plan.check_shareable()
            share.use(plan.device)
        finished = None
        if resume is not None:
            finished = plan.finished(resume)
            # Sums of products of matrices depend on the sizes of ranges.
            memory = finished.settings.get("memory") if memory is None else memory
            batch_size = finished.settings.get("batch_size") if batch_size is None else batch_size
        if memory is None:
            memory = available_memory(plan.device)
        if share is not None:
            # Ways of a layer follow from what has room; layers that all have finished are kept.
            memory = min(share.agree("memory", memory))
            done = 0 if finished is None else finished.count
            count = min(share.agree("finished layers", done))
            if finished is not None:
                finished.keep(count)
        if finished is not None:
            finished.settings.update(memory=memory, batch_size=batch_size)
            finished.save()
        stack.enter_context(torch.no_grad())
        stack.enter_context(evaluation(plan.modules))
        tell = stack.enter_context(progress_callback(progress, "inference", "node"))
        run = InferenceRun(plan.device, batch_size, memory, finished, tell, share)
        for each in outputs.values():
            stack.callback(each.abandon)
        run.expect(plan.num_rows)
        result = plan.execute(run, outputs)
        if plan.device.type == "cuda":
            torch.cuda.synchronize(plan.device)
    return result
