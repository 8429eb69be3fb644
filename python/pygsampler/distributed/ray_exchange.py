"""``RayExchange``: parts of a graph that actors of Ray have."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from pygsampler.distributed.exchange import Answer, Exchange, Message


class PartActor:
    """An actor of Ray that has a part, and answers for it."""

    def __init__(self, path: str, part: int, device: Any = "cpu") -> None:
        from pygsampler._arrays import devices
        from pygsampler.distributed.device_row_server import row_server
        from pygsampler.distributed.partition import Partition

        self._owner = row_server(Partition.open(path), part, devices.parse(device))

    def answer(self, message: bytes) -> bytes:
        """The answers to the questions of a message."""
        return self._owner.answer(message)

    def process(self) -> int:
        """The number of its process."""
        return os.getpid()


class RayExchange(Exchange):
    """An exchange over actors of Ray, one for each part: for trainers that come and go.

    The process that samples has no part. Any number of processes may ask the same actors. Ray
    starts an actor that dies again, where there is room, and asks it once more what it was asked:
    the answers are the same, as rows are a function of what was asked.

    Parameters
    ----------
    actors : sequence of ray.actor.ActorHandle
        Of each part, in order; ``start`` makes them.
    timeout : float
        Seconds after which actors that do not answer, Ray's restarts included, are an error.
    """

    owns = False

    def __init__(self, actors: Sequence[Any], *, timeout: float = 300.0) -> None:
        if not timeout > 0:
            raise ValueError(f"timeout: expected seconds > 0, got {timeout!r}")
        self.actors = tuple(actors)
        self._timeout = timeout

    @classmethod
    def start(
        cls,
        path: str | os.PathLike[str],
        *,
        timeout: float = 300.0,
        restarts: int = -1,
        device: Any = "cpu",
        **options: Any,
    ) -> RayExchange:
        """Starts an actor for each part in a folder, which all machines of the cluster see.

        Parameters
        ----------
        path : path
            The folder of the parts.
        timeout : float
            As that of the class.
        restarts : int
            How often Ray starts an actor again; -1: always.
        device : device
            Where the actors draw rows, as for ``open``; on a GPU give ``num_gpus=`` too.
        **options
            Those of ``ray.remote``: ``num_cpus``, ``resources``, ``scheduling_strategy``, ...

        Raises
        ------
        ImportError
            Without Ray.
        """
        from pygsampler.distributed.partition import Partition

        ray = _ray()
        folder = str(path)
        about = {"max_restarts": restarts, "max_task_retries": -1 if restarts else 0, **options}
        kind = ray.remote(**about)(PartActor)
        parts = range(Partition.open(folder).num_parts)
        return cls(
            [kind.remote(os.path.abspath(folder), part, device) for part in parts], timeout=timeout
        )

    @property
    def rank(self) -> int:
        """The rank, -1: this process has no part."""
        return -1

    @property
    def size(self) -> int:
        """The number of actors."""
        return len(self.actors)

    def ask(
        self, questions: Sequence[Message], answer: Answer, *, leaving: bool = False
    ) -> list[Message] | None:
        """Sends requests to shards, as ``Exchange.ask`` does; other processes need not call it.

        Parameters
        ----------
        questions, answer, leaving
            The arguments of ``Exchange.ask``.
        """
        ray = _ray()
        asked = {part: question for part, question in enumerate(questions) if len(question)}
        self.busy = bool(asked)
        if not asked:
            return None if leaving else [b""] * self.size
        coming = [self.actors[part].answer.remote(question) for part, question in asked.items()]
        try:
            came = ray.get(coming, timeout=self._timeout)
        except ray.exceptions.GetTimeoutError:
            raise RuntimeError(f"actors did not answer within {self._timeout:g} s") from None
        given: list[Message] = [b""] * self.size
        for part, message in zip(asked, came, strict=True):
            given[part] = message
        return given

    def close(self) -> None:
        """Leaves the actors as they are: others may ask them. Ray ends them with their handles."""


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise ImportError("RayExchange needs Ray: pip install ray") from error
    return ray
