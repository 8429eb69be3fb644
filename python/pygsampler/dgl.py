"""A drop-in for ``dgl.dataloading.NeighborSampler``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

try:
    import torch
    from dgl import DGLGraph
    from dgl.dataloading import BlockSampler
    from torch.utils.data import get_worker_info
except ImportError as error:
    raise ImportError("pygsampler.dgl needs DGL: pip install 'pygsampler[dgl]'") from error

from pygsampler import sampler as _core
from pygsampler._check import boolean
from pygsampler._dgl.block import hops_of, make_block
from pygsampler._dgl.graph import Places, graph_of, places_of
from pygsampler._identity import Identity

if TYPE_CHECKING:
    from pygsampler.converted import TorchBatch
    from pygsampler.graph import Graph

__all__ = ["PGSampler"]


class PGSampler(BlockSampler):  # type: ignore[misc]
    """Uniform neighbour sampling for DGL's ``DataLoader``, by pygsampler's engine.

    Takes the place of ``dgl.dataloading.NeighborSampler``:

        sampler = pygsampler.dgl.PGSampler([10, 10])
        loader = dgl.dataloading.DataLoader(g, train_ids, sampler, batch_size=1024, shuffle=True)
        for input_nodes, output_nodes, blocks in loader:
            ...

    The blocks are what DGL's own sampler gives: destinations first among the sources, ``dgl.NID``
    in ``srcdata`` and ``dstdata``, ``dgl.EID`` (the edge's id in ``g``) in ``edata``, the graph's
    features beside them, all ids in ``g.idtype``. The graph's CSC is used where it lies and
    is taken anew when the graph changes.

    Who samples is said by the graph and the seeds, as in DGL. In its loader that is:

    - Graph and indices on a GPU: that GPU, with blocks there.
    - Graph on the CPU, ``use_uva=True``: the GPU, out of page-locked host memory, with blocks on
      the GPU. This is for graphs that are larger than its memory.
    - Graph on the CPU, ``device="cuda"`` and nothing else: the CPU, in the loader's own prefetch
      thread, which then copies the blocks to the GPU. The sampler does not touch CUDA.
    - Graph on the CPU, with any number of workers: the CPU.

    Parameters
    ----------
    fanouts : list of int
        In-neighbours to sample for each vertex, outermost hop first: ``fanouts[-1]`` is applied
        to the seeds. -1 takes all, also with ``replace=True``; 0 none.
    edge_dir : str
        ``'in'``. For out-neighbours sample ``dgl.reverse(g)``, which keeps the edge ids.
    prob, mask : None
        Weighted sampling is not offered yet: ``NotImplementedError``; both together are a
        ``ValueError`` as in DGL. In the place of a mask sample
        ``dgl.edge_subgraph(g, g.edata[mask], relabel_nodes=False)``.
    replace : bool
        Sample with replacement.
    prefetch_node_feats, prefetch_labels, prefetch_edge_feats
        As in DGL.
    output_device : str, int or torch.device, optional
        Where the blocks and ``input_nodes`` are to be, if not where they are sampled.
    fused : bool
        Accepted for compatibility; there is one implementation.
    seed : int, optional
        64-bit seed of the random numbers. Default: ``torch.initial_seed()`` at construction.

    Notes
    -----
    Random numbers. Call ``sampler.set_epoch(n)`` before each epoch to make every batch a pure
    function of (graph, options, seed, n, the batch's seeds and excluded edges): it is then the
    same for every number of workers, for fork and spawn, and in a later run. Without it no batch
    repeats an earlier one by accident, with equal seeds neither: each call of ``sample`` counts up,
    and in a worker process of torch's DataLoader the worker's own seed, which torch draws anew for
    each epoch, is mixed in; a run is then repeated by ``torch.manual_seed`` and the same number of
    workers. ``set_epoch`` also reaches persistent workers.

    Duplicate seeds keep their places in ``output_nodes`` and in the last block's destinations,
    so labels taken by ``output_nodes`` fit. Each distinct vertex is sampled once; the rows of equal
    seeds are equal.

    Excluded edges (``exclude_eids``, as ``as_edge_prediction_sampler`` gives them) are sampled
    around: a vertex gets ``fanout`` of its other edges where it has as many, while DGL samples
    first and then removes, which leaves fewer.

    On a GPU. The samples are those of the CPU. A batch is sampled in torch's current stream, and
    its arrays are views of one tensor that torch allocates there; the call returns when the batch
    is complete. The random numbers depend on the seeds, so these are copied to the host, and so are
    the ids of excluded edges. ``block.record_stream``, which DGL offers only for blocks whose
    arrays each have an allocation of their own, does not work; ``input_nodes.record_stream`` is
    enough, since the batch is one allocation.

    Heterographs raise ``NotImplementedError``. In a worker process a batch is sampled by one core.
    """

    def __init__(
        self,
        fanouts: Sequence[int],
        edge_dir: str = "in",
        prob: str | None = None,
        mask: str | None = None,
        replace: bool = False,
        prefetch_node_feats: Any = None,
        prefetch_labels: Any = None,
        prefetch_edge_feats: Any = None,
        output_device: Any = None,
        fused: bool = True,
        *,
        seed: int | None = None,
    ) -> None:
        super().__init__(
            prefetch_node_feats=prefetch_node_feats,
            prefetch_labels=prefetch_labels,
            prefetch_edge_feats=prefetch_edge_feats,
            output_device=output_device,
        )
        if isinstance(fanouts, Sequence) and any(isinstance(f, Mapping) for f in fanouts):
            raise NotImplementedError(
                "fanouts: expected integers, got a dict for each edge type; "
                "heterographs are not offered yet"
            )
        self._sampler = _core.PGSampler(fanouts, replace=boolean(replace, "replace"), seed=seed)
        if prob is not None and mask is not None:
            raise ValueError(
                "prob, mask: expected at most one of them, got both; "
                "a mask can be multiplied into the probability"
            )
        if prob is not None:
            raise NotImplementedError(
                f"prob: weighted sampling is not offered yet, got {prob!r}; "
                "expected None, which samples uniformly"
            )
        if mask is not None:
            raise NotImplementedError(
                f"mask: expected None, got {mask!r}, which is not offered; "
                "dgl.edge_subgraph(g, g.edata[...], relabel_nodes=False) has the edges of a mask"
            )
        if edge_dir != "in":
            if edge_dir != "out":
                raise ValueError(f"edge_dir: expected 'in', got {edge_dir!r}")
            raise NotImplementedError(
                "edge_dir: expected 'in', got 'out', which is not offered; "
                "dgl.reverse(g) has the out-edges of g as in-edges, with the same ids"
            )
        self.fanouts = fanouts
        self.edge_dir = edge_dir
        self.prob = None
        self.replace = replace
        self.fused = fused
        self._identity = Identity()

    @property
    def seed(self) -> int:
        """The 64-bit seed of the random numbers."""
        return self._sampler.seed

    def set_epoch(self, epoch: int | None) -> None:
        """Make the batches from now on a function of ``epoch``, an integer in ``[0, 2**24)``.

        ``None`` goes back to batches that never repeat.
        """
        self._identity.set_epoch(epoch)

    def sample_blocks(
        self, g: Any, seed_nodes: Any, exclude_eids: Any = None
    ) -> tuple[torch.Tensor, Any, list[Any]]:
        """Sample the blocks of one batch.

        Parameters
        ----------
        g : dgl.DGLGraph
            A homogeneous graph.
        seed_nodes : tensor, list, or dict of one node type to a tensor
            int32 or int64 vertex ids, where ``g`` is; or on any GPU for a graph in page-locked
            host memory (``g.pin_memory_()``), which that GPU then samples.
        exclude_eids : tensor, list, or dict of one edge type to a tensor, optional
            Ids of the edges to sample around.

        Returns
        -------
        (input_nodes, output_nodes, blocks)
            ``blocks[0].srcdata[dgl.NID]``, ``seed_nodes`` as given, and one DGLBlock for each hop,
            outermost first; on the device of the seeds unless ``output_device`` says another.

        Raises
        ------
        TypeError, ValueError, IndexError
            For seeds or edges of a wrong type, shape or value, and for seeds that are not where
            ``g`` can be sampled.
        NotImplementedError
            For a heterograph.
        CudaError
            When the GPU fails.
        """
        given = _only(seed_nodes, "seed_nodes")
        seeds = _ids(given, "seed_nodes")
        if not isinstance(given, torch.Tensor) and isinstance(g, DGLGraph):
            seeds = seeds.to(g.device)
        graph = graph_of(g, seeds.device)
        exclude, places = None, None
        if exclude_eids is not None:
            exclude = _ids(_only(exclude_eids, "exclude_eids"), "exclude_eids").cpu().long()
            places = places_of(g, graph)
        others = None if exclude is None else (b"exclude", exclude)
        epoch, batch = self._identity.of(seeds.cpu(), others)
        if exclude is not None and places is not None:
            graph, exclude = places.graph, _places(exclude, places)
        threads = 0 if get_worker_info() is None else 1
        sampled = self._batch(graph, seeds, epoch, batch, exclude, threads)
        hops = hops_of(sampled)
        if places is not None:
            hops = [hop._replace(edge_ids=places.edge_ids[hop.edge_ids.long()]) for hop in hops]
        blocks = [make_block(g, hop) for hop in hops]
        input_nodes, output_nodes = hops[0].src, seed_nodes
        if self.output_device is not None:
            device = _complete(torch.device(self.output_device))
            if device != input_nodes.device:
                blocks = [block.to(device) for block in blocks]
                input_nodes = input_nodes.to(device)
        return input_nodes, output_nodes, blocks

    def _batch(
        self,
        graph: Graph,
        seeds: torch.Tensor,
        epoch: int,
        batch: int,
        exclude: torch.Tensor | None,
        threads: int,
    ) -> TorchBatch:
        if graph.device != "cpu" and exclude is None:
            job = self._sampler._launch_torch(graph, seeds, epoch, batch, own_stream=False)
            return job.result()
        return self._sampler.sample(
            graph, seeds, epoch=epoch, batch=batch, exclude=exclude, threads=threads
        ).torch()

    def __repr__(self) -> str:
        return f"pygsampler.dgl.PGSampler({list(self.fanouts)}, replace={self.replace})"


def _only(values: Any, where: str) -> Any:
    """The ids of a homogeneous graph, which DGL also writes as a dict with one type."""
    if not isinstance(values, Mapping):
        return values
    if not values:
        return ()
    if len(values) > 1:
        raise NotImplementedError(f"{where}: expected one type, got {sorted(map(str, values))}")
    return next(iter(values.values()))


def _ids(values: Any, where: str) -> torch.Tensor:
    """A 1-D tensor of int32 or int64, on the device of ``values`` if they have one."""
    ids = torch.as_tensor(values)
    if not ids.numel() and not isinstance(values, torch.Tensor):
        ids = ids.long()
    if ids.dtype not in (torch.int32, torch.int64):
        hint = "; mask.nonzero().squeeze(1) gives its ids" if ids.dtype == torch.bool else ""
        raise TypeError(f"{where}: expected int32 or int64 ids, got {ids.dtype}{hint}")
    if ids.dim() > 1:
        raise ValueError(f"{where}: expected a 1-D tensor, got shape {tuple(ids.shape)}")
    return ids.reshape(-1).contiguous()


def _places(exclude: torch.Tensor, places: Places) -> torch.Tensor:
    """Where the edges with the ids ``exclude`` are in the CSC, on the CPU as the ids are."""
    edges = len(places.place)
    outside = (exclude < 0) | (exclude >= edges)
    # On a GPU a wrong index would end the process's use of it.
    if outside.any():
        at = int(outside.nonzero()[0])
        raise ValueError(
            f"exclude[{at}]: expected the id of an edge of the graph, got {int(exclude[at])}"
        )
    return places.place[exclude.to(places.place.device)].cpu().long()


def _complete(device: torch.device) -> torch.device:
    """``device`` with the number that it has, as tensors say it: "cuda" is the current one."""
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return device
