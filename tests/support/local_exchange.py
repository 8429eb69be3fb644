"""``Here``: all parts of a graph in the process of a test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pygsampler import distributed
from pygsampler.distributed.ray_exchange import PartActor


class Here(distributed.Exchange):
    """All parts in this process, which asks them as others ask actors of Ray."""

    owns, rank = False, -1
    rounds = 0

    def __init__(self, folder: Path, size: int) -> None:
        self.actors = [PartActor(str(folder), part) for part in range(size)]

    @property
    def size(self) -> int:
        return len(self.actors)

    def ask(self, questions: Any, answer: Any, *, leaving: bool = False) -> Any:
        if not any(questions):
            return None if leaving else [b""] * self.size
        self.rounds += 1
        return [
            actor.answer(question) if question else b""
            for actor, question in zip(self.actors, questions, strict=True)
        ]

    def close(self) -> None:
        pass
