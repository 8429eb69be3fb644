"""``Exchange``: how processes with the parts of a graph ask each other; by torch.distributed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

# What one process says to another: the bytes behind a buffer.
Message = Any
Answer = Callable[[Sequence[Message]], Sequence[Message]]


class Exchange(ABC):
    """Carries questions to the processes that have the parts of a graph, and answers back.

    Messages are buffers of whole 64 bit words, empty where there is nothing to say.
    """

    together: bool = False
    """Whether all processes call ``ask`` together, those with nothing to ask too."""
    busy: bool = False
    """Whether some process had a question when ``ask`` was called last."""

    owns: bool = True
    """Whether this process has a part, that of its rank, and answers for it."""

    @property
    @abstractmethod
    def rank(self) -> int:
        """Which of the processes this is, from 0 on."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many parts there are, each with a process that answers for it."""

    @abstractmethod
    def ask(
        self, questions: Sequence[Message], answer: Answer, *, leaving: bool = False
    ) -> list[Message] | None:
        """Asks each process its question, and has its answer.

        Parameters
        ----------
        questions : sequence of buffers, one for each process
            That of this process is empty: it answers itself.
        answer : callable
            Of the questions to this process, one of each: the answers, in their order.
        leaving : bool
            This process asks nothing more. It goes on answering until all are leaving.

        Returns
        -------
        list of buffers, or None
            The answers. Their bytes begin at multiples of 8 and stay for as long as the buffers do.
            None once all processes are leaving.

        Raises
        ------
        RuntimeError
            Where a process is gone, or has not come within the timeout.
        """

    @abstractmethod
    def close(self) -> None:
        """Lets go of what the exchange has opened."""


class TorchExchange(Exchange):
    """Over a process group of ``torch.distributed``: all-to-all of sizes, then of bytes.

    Parameters
    ----------
    group : torch.distributed.ProcessGroup, optional
        Of Gloo or NCCL, used by nobody else: calls of others would meet those of the exchange. By
        default a new one of Gloo with all processes, which therefore all make an exchange.
    timeout : float
        Seconds after which a process that does not come is an error on all others; of a new group.

    Raises
    ------
    RuntimeError
        Where ``torch.distributed`` has not been initialised.
    """

    together = True

    def __init__(self, group: Any = None, *, timeout: float = 300.0) -> None:
        from datetime import timedelta

        import torch
        import torch.distributed as dist

        if not dist.is_available() or not dist.is_initialized():
            raise RuntimeError(
                "TorchExchange: expected an initialised torch.distributed, got none; start with "
                "torchrun and call torch.distributed.init_process_group()"
            )
        if not timeout > 0:
            raise ValueError(f"timeout: expected seconds > 0, got {timeout!r}")
        self._own = group is None
        if group is None:
            group = dist.new_group(backend="gloo", timeout=timedelta(seconds=timeout))
        self._group = group
        self._rank, self._size = dist.get_rank(group), dist.get_world_size(group)
        backend = dist.get_backend(group)
        if backend not in ("gloo", "nccl"):
            raise ValueError(f"group: expected one of Gloo or NCCL, got {backend}")
        self._device = (
            torch.device("cpu")
            if backend == "gloo"
            else torch.device("cuda", torch.cuda.current_device())
        )

    @property
    def rank(self) -> int:
        """This process's rank in the group."""
        return int(self._rank)

    @property
    def size(self) -> int:
        """How many processes the group has."""
        return int(self._size)

    def ask(
        self, questions: Sequence[Message], answer: Answer, *, leaving: bool = False
    ) -> list[Message] | None:
        """As ``Exchange.ask``; all processes of the group call it together."""
        if self._size == 1:
            return None if leaving else [b""]
        asks = any(len(question) for question in questions)
        come, states = self._sizes([len(question) for question in questions], leaving | asks << 1)
        self.busy = any(state & 2 for state in states)
        if not self.busy:
            return None if all(state & 1 for state in states) else [b""] * self._size
        given = answer(self._swap(questions, come))
        sizes, _ = self._sizes([len(one) for one in given], 0)
        return self._swap(given, sizes)

    def close(self) -> None:
        """Destroys the group, where the exchange has made it."""
        import torch.distributed as dist

        if self._own and dist.is_initialized():
            dist.destroy_process_group(self._group)
        self._own = False

    def _sizes(self, sizes: Sequence[int], state: int) -> tuple[list[int], list[int]]:
        """The sizes of what others send here, and their states."""
        import torch
        import torch.distributed as dist

        mine = torch.tensor([[size, state] for size in sizes], dtype=torch.int64)
        mine = mine.to(self._device)
        theirs = torch.empty_like(mine)
        dist.all_to_all_single(theirs, mine, group=self._group)
        columns: list[list[int]] = theirs.T.tolist()
        return columns[0], columns[1]

    def _swap(self, messages: Sequence[Message], come: Sequence[int]) -> list[Message]:
        """What others send here, of those sizes."""
        import torch
        import torch.distributed as dist

        from pygsampler._core.memories import owned_view

        flat = bytearray().join(messages)
        # A tensor of no bytes has no buffer to be made of.
        out = (
            torch.frombuffer(flat, dtype=torch.uint8) if flat else torch.empty(0, dtype=torch.uint8)
        )
        into = torch.empty(sum(come), dtype=torch.uint8, device=self._device)
        sizes = [len(message) for message in messages]
        dist.all_to_all_single(into, out.to(self._device), list(come), sizes, group=self._group)
        here = into.cpu()
        views: list[Message] = []
        at = here.data_ptr()
        for size in come:
            views.append(owned_view(at, size, here) if size else b"")
            at += size
        return views
