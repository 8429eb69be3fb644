"""A drop-in for ``dgl.dataloading.NeighborSampler``."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

try:
    import torch
    from dgl.dataloading import BlockSampler
    from torch.utils.data import get_worker_info
except ImportError as error:
    raise ImportError("pygsampler.dgl needs DGL: pip install 'pygsampler[dgl]'") from error

from pygsampler import sampler as _core
from pygsampler._check import boolean, integer
from pygsampler._dgl_block import hops_of, make_block
from pygsampler._dgl_graph import graph_of

__all__ = ["PGSampler"]

BATCH_BITS = _core.MAX_BATCH.bit_length()
UNSET = -1


class PGSampler(BlockSampler):  # type: ignore[misc]
    """Uniform neighbour sampling for DGL's ``DataLoader``, by pygsampler's engine.

    Takes the place of ``dgl.dataloading.NeighborSampler``::

        sampler = pygsampler.dgl.PGSampler([10, 10])
        loader = dgl.dataloading.DataLoader(g, train_ids, sampler, batch_size=1024, shuffle=True)
        for input_nodes, output_nodes, blocks in loader:
            ...

    The blocks are what DGL's own sampler gives: destinations first among the sources, ``dgl.NID``
    in ``srcdata`` and ``dstdata``, ``dgl.EID`` (the edge's id in ``g``) in ``edata``, the graph's
    features beside them, all ids in ``g.idtype``. The graph's CSC is used where it lies and
    is taken anew when the graph changes.

    Parameters
    ----------
    fanouts : list of int
        In-neighbours to sample for each vertex, outermost hop first: ``fanouts[-1]`` is applied
        to the seeds. -1 takes all, also with ``replace=True``; 0 none.
    edge_dir : str
        ``'in'``. For out-neighbours sample ``dgl.reverse(g)``, which keeps the edge ids.
    prob, mask : None
        Weighted sampling is not offered yet: ``NotImplementedError``; both together are a
        ``ValueError`` as in DGL.
    replace : bool
        Sample with replacement.
    prefetch_node_feats, prefetch_labels, prefetch_edge_feats, output_device
        As in DGL.
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

    Heterographs and graphs on a GPU, and with them ``use_uva=True``, raise
    ``NotImplementedError``. In a worker process a batch is sampled by one core.
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
        if prob is not None and mask is not None:
            raise ValueError(
                "prob, mask: expected at most one of them, got both; "
                "a mask can be multiplied into the probability"
            )
        for name, value in (("prob", prob), ("mask", mask)):
            if value is not None:
                raise NotImplementedError(
                    f"{name}: weighted sampling is not offered yet, got {value!r}; "
                    f"expected None, which samples uniformly"
                )
        if edge_dir != "in":
            if edge_dir != "out":
                raise ValueError(f"edge_dir: expected 'in', got {edge_dir!r}")
            raise NotImplementedError(
                "edge_dir: expected 'in', got 'out', which is not offered; "
                "dgl.reverse(g) has the out-edges of g as in-edges, with the same ids"
            )
        if isinstance(fanouts, Sequence) and any(isinstance(f, Mapping) for f in fanouts):
            raise NotImplementedError(
                "fanouts: expected integers, got a dict for each edge type; "
                "heterographs are not offered yet"
            )
        self._sampler = _core.PGSampler(fanouts, replace=boolean(replace, "replace"), seed=seed)
        self.fanouts = fanouts
        self.edge_dir = edge_dir
        self.prob = None
        self.replace = replace
        self.fused = fused
        self._calls = itertools.count()
        # In shared memory, so that workers that live through several epochs see set_epoch too.
        self._epoch: Any = torch.full((1,), UNSET, dtype=torch.int64)
        self._epoch.share_memory_()  # type: ignore[no-untyped-call]

    @property
    def seed(self) -> int:
        """The 64-bit seed of the random numbers."""
        return self._sampler.seed

    def set_epoch(self, epoch: int | None) -> None:
        """Make the batches from now on a function of ``epoch``, an integer in ``[0, 2**24)``.

        ``None`` goes back to batches that never repeat.
        """
        if epoch is None:
            self._epoch[0] = UNSET
        else:
            self._epoch[0] = integer(epoch, "epoch", 0, _core.MAX_EPOCH)

    def sample_blocks(
        self, g: Any, seed_nodes: Any, exclude_eids: Any = None
    ) -> tuple[torch.Tensor, Any, list[Any]]:
        """Sample the blocks of one batch.

        Parameters
        ----------
        g : dgl.DGLGraph
            A homogeneous graph on the CPU.
        seed_nodes : tensor, list, or dict of one node type to a tensor
            int32 or int64 vertex ids.
        exclude_eids : tensor, list, or dict of one edge type to a tensor, optional
            Ids of the edges to sample around.

        Returns
        -------
        (input_nodes, output_nodes, blocks)
            ``blocks[0].srcdata[dgl.NID]``, ``seed_nodes`` as given, and one DGLBlock for each hop,
            outermost first.
        """
        graph = graph_of(g)
        seeds = _ids(_only(seed_nodes, "seed_nodes"), "seed_nodes")
        exclude = None
        if exclude_eids is not None:
            exclude = _ids(_only(exclude_eids, "exclude_eids"), "exclude_eids").long()
        worker = get_worker_info()
        epoch, batch = self._identity(seeds, exclude, None if worker is None else worker.seed)
        sampled = self._sampler.sample(
            graph,
            seeds,
            epoch=epoch,
            batch=batch,
            exclude=exclude,
            threads=0 if worker is None else 1,
        )
        hops = hops_of(sampled)
        blocks = [make_block(g, hop) for hop in hops]
        input_nodes, output_nodes = hops[0].src, seed_nodes
        if self.output_device is not None and torch.device(self.output_device).type != "cpu":
            blocks = [block.to(self.output_device) for block in blocks]
            input_nodes = input_nodes.to(self.output_device)
        return input_nodes, output_nodes, blocks

    def _identity(
        self, seeds: torch.Tensor, exclude: torch.Tensor | None, worker_seed: int | None
    ) -> tuple[int, int]:
        """(epoch, batch) for the random numbers of this call.

        A batch carries no number that would be the same for every number of workers: its content
        does. Ranks of a data-parallel run differ by it too.
        """
        content = hashlib.blake2b(seeds.numpy().tobytes(), digest_size=8)
        if exclude is not None:
            # The length keeps (seeds, exclude) apart from another cut of the same numbers.
            content.update(b"exclude %d " % exclude.numel())
            content.update(exclude.numpy().tobytes())
        epoch = int(self._epoch)
        if epoch == UNSET:
            content.update(b"call %d of %d" % (next(self._calls), worker_seed or 0))
        number = int.from_bytes(content.digest(), "little")
        batch = number & _core.MAX_BATCH
        return (number >> BATCH_BITS if epoch == UNSET else epoch), batch

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_calls": next(self._calls)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._calls = itertools.count(state["_calls"])
        if not self._epoch.is_shared():
            self._epoch.share_memory_()

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
    """A 1-D CPU tensor of int32 or int64."""
    ids = torch.as_tensor(values)
    if not ids.numel() and not isinstance(values, torch.Tensor):
        ids = ids.long()
    if ids.dtype not in (torch.int32, torch.int64):
        hint = "; mask.nonzero().squeeze(1) gives its ids" if ids.dtype == torch.bool else ""
        raise TypeError(f"{where}: expected int32 or int64 ids, got {ids.dtype}{hint}")
    if ids.dim() > 1:
        raise ValueError(f"{where}: expected a 1-D tensor, got shape {tuple(ids.shape)}")
    if ids.device.type != "cpu":
        raise NotImplementedError(
            f"{where}: expected a tensor on the CPU, got {ids.device}; "
            f"use_uva=True and graphs on a GPU are not offered yet"
        )
    return ids.reshape(-1).contiguous()
