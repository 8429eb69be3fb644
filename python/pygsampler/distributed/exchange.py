"""``Exchange``: how processes with the parts of a graph ask each other; by torch.distributed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from pygsampler.distributed.process_group import ProcessGroup

# A message from one process to another: the bytes behind a buffer.
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
        """The number of this process, from 0 on."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of parts, each with a process that answers for it."""

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
    """An exchange over a group of ``torch.distributed``: all-to-all of sizes, then of bytes.

    Parameters
    ----------
    group : torch.distributed.ProcessGroup, optional
        A group of Gloo or NCCL without another user, whose calls would mix with calls of the
        exchange. By default a new group of Gloo with all processes, which therefore all create an
        exchange.
    timeout : float
        Seconds after which a process that is stuck is an error on all others, for a new group.
    wait : float, optional
        Seconds for all processes to create their exchange, for a new group: a process that is gone
        before it has opened its shard is an error on the others then; a warning names it after ten
        seconds. The default is ``timeout``.

    Raises
    ------
    RuntimeError
        Where ``torch.distributed`` has not been initialised.
    TimeoutError
        If processes have not joined within ``wait``: it names their ranks.
    """

    together = True

    def __init__(
        self, group: Any = None, *, timeout: float = 300.0, wait: float | None = None
    ) -> None:
        self._group = ProcessGroup("TorchExchange", group, timeout, wait)

    @property
    def rank(self) -> int:
        """This process's rank in the group."""
        return self._group.rank

    @property
    def size(self) -> int:
        """The number of processes of the group."""
        return self._group.size

    def ask(
        self, questions: Sequence[Message], answer: Answer, *, leaving: bool = False
    ) -> list[Message] | None:
        """Sends requests to shards, as ``Exchange.ask`` does, in all processes together.

        Parameters
        ----------
        questions, answer, leaving
            The arguments of ``Exchange.ask``.
        """
        group = self._group
        if group.size == 1:
            return None if leaving else [b""]
        asks = any(len(question) for question in questions)
        come, states = group.sizes([len(question) for question in questions], leaving | asks << 1)
        self.busy = any(state & 2 for state in states)
        if not self.busy:
            return None if all(state & 1 for state in states) else [b""] * group.size
        given = answer(group.swap(questions, come))
        sizes, _ = group.sizes([len(one) for one in given], 0)
        return group.swap(given, sizes)

    def close(self) -> None:
        """Destroys the group, if the exchange has created it."""
        self._group.close()
