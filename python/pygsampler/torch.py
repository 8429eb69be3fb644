"""Mini-batches for training loops in plain PyTorch."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

try:
    import torch
    from torch.utils.dlpack import from_dlpack
except ImportError as error:
    raise ImportError("pygsampler.torch needs PyTorch: pip install 'pygsampler[torch]'") from error

from pygsampler._ahead import close_at_exit, in_order
from pygsampler._check import boolean, describe, integer
from pygsampler._engine import call
from pygsampler._shards import Shards
from pygsampler.graph import Graph
from pygsampler.sampler import MAX_EPOCH, PGSampler

if TYPE_CHECKING:
    from pygsampler._job import Job
    from pygsampler.minibatch import MiniBatch, TorchBatch

__all__ = ["DataLoader"]

SEED_MASK = (1 << 64) - 1


class DataLoader:
    """Iterate over ``seeds`` in mini-batches of sampled blocks, as torch tensors.

    Sampling runs in the Go engine, outside the GIL, up to ``prefetch`` batches ahead of the
    training loop; no worker processes or Python threads are involved::

        loader = DataLoader(graph, train_ids, [10, 10], batch_size=1024, shuffle=True)
        for epoch in range(10):
            for batch in loader:
                h = features[batch.input_nodes]
                ...

    Parameters
    ----------
    graph : Graph
        The graph to sample from, on the CPU.
    seeds : int32 or int64 vertex ids, 1-D
        A tensor, a NumPy array or a list. They are copied. Duplicates are allowed, see
        :class:`~pygsampler.MiniBatch`. None at all makes a loader of length 0.
    sampler_or_fanouts : PGSampler or list of int
        A sampler, or the fanouts to make one of, outermost hop first.
    batch_size : int
        Seeds of a batch, at least 1.
    shuffle : bool
        Permute the seeds anew in each epoch.
    drop_last : bool
        Drop batches that are not full, the same number on all ranks.
    prefetch : int
        Batches sampled ahead while the consumer works on one; 0 samples a batch only when it is
        asked for. From 2 on each batch is sampled by one core and several batches run at once.
        Memory is that of ``prefetch + 1`` batches.
    seed : int, optional
        64-bit seed of the order, and of the sampler where fanouts are given. Default: the
        sampler's own, which is ``torch.initial_seed()`` unless chosen.
    rank, world_size : int
        This process's part in data-parallel training. The (shuffled) seeds are dealt out exactly:
        each seed goes to one rank, all ranks have the same number of batches, and no batch is
        empty or larger than ``batch_size``. Give all ranks the same ``seed``.
    progress : bool
        Show a tqdm bar with batches and sampled edges per second.

    Yields
    ------
    What ``MiniBatch.torch()`` returns: tensors that share the engine's memory.

    Notes
    -----
    The batches are a pure function of the graph, the seeds, the options, ``seed``, the epoch,
    ``rank`` and ``world_size``; ``prefetch`` and the number of threads never change them. Each
    ``iter()`` takes the current epoch and advances it by one, so two passes never repeat the
    same samples by accident; ``set_epoch(n)`` chooses the epoch of the next pass, as a resumed run
    does. Iterators are independent of each other and several may be in use at once, each of its
    own epoch. A batch that fails raises when its turn comes, after the batches before it. Leaving
    a loop early, an error, Ctrl-C and the end of the interpreter cancel what is in flight.

    A loader can be pickled when its graph can; its iterators cannot.

    Raises
    ------
    TypeError, ValueError
        For arguments of a wrong type or value, naming the argument. With ``world_size`` > 1 where
        no exact sharding exists: fewer seeds than ranks, or ``batch_size=1`` with a number of
        seeds that ``world_size`` does not divide (``drop_last=True`` allows the latter).
    IndexError
        For a seed outside ``[0, graph.num_nodes)``.
    """

    def __init__(
        self,
        graph: Graph,
        seeds: Any,
        sampler_or_fanouts: PGSampler | Sequence[int],
        *,
        batch_size: int,
        shuffle: bool = False,
        drop_last: bool = False,
        prefetch: int = 4,
        seed: int | None = None,
        rank: int = 0,
        world_size: int = 1,
        progress: bool = False,
    ) -> None:
        if not isinstance(graph, Graph):
            raise TypeError(
                f"graph: expected a pygsampler.Graph, got {describe(graph)}; "
                f"Graph.from_dgl, from_pyg, from_scipy, from_csc and from_coo make one"
            )
        self.batch_size = integer(batch_size, "batch_size", 1)
        self.shuffle = boolean(shuffle, "shuffle")
        self.drop_last = boolean(drop_last, "drop_last")
        self.prefetch = integer(prefetch, "prefetch", 0)
        self.world_size = integer(world_size, "world_size", 1)
        self.rank = integer(rank, "rank", 0, self.world_size - 1)
        self.progress = boolean(progress, "progress")
        if seed is not None:
            seed = integer(seed, "seed", -(1 << 63), SEED_MASK) & SEED_MASK
        if isinstance(sampler_or_fanouts, PGSampler):
            self.sampler = sampler_or_fanouts
        else:
            self.sampler = PGSampler(sampler_or_fanouts, seed=seed)
        self.seed = self.sampler.seed if seed is None else seed
        self.graph = graph
        self._seeds = _seed_tensor(seeds, graph.num_nodes)
        self._shards = Shards(len(self._seeds), self.batch_size, self.world_size, self.drop_last)
        self._epoch = 0

    @property
    def epoch(self) -> int:
        """The epoch that the next ``iter()`` takes."""
        return self._epoch

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch of the next ``iter()``, an integer in ``[0, 2**24)``.

        Without a call the epochs are 0, 1, 2, ... in the order of the ``iter()`` calls.
        """
        self._epoch = integer(epoch, "epoch", 0, MAX_EPOCH)

    def __len__(self) -> int:
        """Number of batches of one epoch on this rank, the same on every rank."""
        return self._shards.steps

    def __iter__(self) -> Iterator[TorchBatch]:
        epoch = self._epoch
        self._epoch = (epoch + 1) % (MAX_EPOCH + 1)
        if self.progress:
            return close_at_exit(self._with_bar(self._batches(epoch), epoch))
        return close_at_exit(self._tensors(self._batches(epoch)))

    def __repr__(self) -> str:
        ranks = f", rank={self.rank}, world_size={self.world_size}" if self.world_size > 1 else ""
        return (
            f"DataLoader({len(self._seeds)} seeds, {self.sampler!r}, "
            f"batch_size={self.batch_size}, shuffle={self.shuffle}, drop_last={self.drop_last}, "
            f"prefetch={self.prefetch}{ranks})"
        )

    def _batches(self, epoch: int) -> Generator[MiniBatch, None, None]:
        """The batches of this rank; none is submitted before the first is asked for."""
        order = self._order(epoch)
        # With several batches in flight, one core for each wastes nothing on synchronisation.
        threads = 1 if self.prefetch >= 2 else 0

        def submit(step: int) -> Job:
            start, end = self._shards.bounds(self.rank, step)
            return self.sampler.submit(
                self.graph,
                order[start:end],
                epoch=epoch,
                batch=step * self.world_size + self.rank,
                threads=threads,
            )

        return in_order(submit, self._shards.steps, self.prefetch)

    def _order(self, epoch: int) -> torch.Tensor:
        if not self.shuffle:
            return self._seeds
        order = self._seeds.clone()
        bits = 8 * order.element_size()
        # The engine takes the 64 bits as a signed number.
        seed = self.seed - (1 << 64) if self.seed >> 63 else self.seed
        call("Shuffle", order.data_ptr(), order.numel(), bits, seed, epoch)
        return order

    def _tensors(
        self, batches: Generator[MiniBatch, None, None]
    ) -> Generator[TorchBatch, None, None]:
        with closing(batches):
            for batch in batches:
                yield batch.torch()

    def _with_bar(
        self, batches: Generator[MiniBatch, None, None], epoch: int
    ) -> Generator[TorchBatch, None, None]:
        try:
            from tqdm.auto import tqdm
        except ImportError as error:
            raise ImportError("progress=True needs tqdm: pip install tqdm") from error
        edges = 0
        bar = tqdm(total=len(self), desc=f"epoch {epoch}", unit="batch")
        with closing(batches), bar:
            start = time.perf_counter()
            for batch in batches:
                edges += batch.num_edges
                rate = edges / max(time.perf_counter() - start, 1e-9)
                bar.set_postfix_str(f"{rate / 1e6:.2f} M edges/s", refresh=False)
                yield batch.torch()
                bar.update()


def _seed_tensor(seeds: Any, num_nodes: int) -> torch.Tensor:
    """A contiguous CPU copy of the vertex ids, int32 or int64, each in ``[0, num_nodes)``."""
    if isinstance(seeds, torch.Tensor):
        tensor = seeds
    elif hasattr(seeds, "__dlpack__") and not hasattr(seeds, "__array__"):
        tensor = from_dlpack(seeds)
    else:
        try:
            tensor = torch.as_tensor(seeds)
        except (TypeError, ValueError, RuntimeError) as error:
            raise TypeError(
                f"seeds: expected a 1-D array of int32 or int64 vertex ids, "
                f"got {describe(seeds)}: {error}"
            ) from None
        if tensor.numel() == 0 and isinstance(seeds, (list, tuple)):
            tensor = tensor.to(torch.int64)
    if tensor.dtype == torch.bool:
        raise TypeError(
            "seeds: expected vertex ids, got a boolean mask; "
            "mask.nonzero().squeeze(1) gives the ids that it selects"
        )
    if tensor.dtype not in (torch.int32, torch.int64):
        raise TypeError(f"seeds: expected int32 or int64 vertex ids, got {tensor.dtype}")
    if tensor.dim() != 1:
        raise ValueError(f"seeds: expected a 1-D array, got shape {tuple(tensor.shape)}")
    if tensor.device.type != "cpu":
        raise ValueError(f"seeds: expected an array on the CPU, got {tensor.device}")
    tensor = tensor.detach().clone(memory_format=torch.contiguous_format)
    if tensor.numel():
        low, high = tensor.aminmax()
        if int(low) < 0 or int(high) >= num_nodes:
            at = int(((tensor < 0) | (tensor >= num_nodes)).nonzero()[0])
            raise IndexError(
                f"seeds[{at}]: expected a vertex in [0, {num_nodes}), got {int(tensor[at])}"
            )
    return tensor
