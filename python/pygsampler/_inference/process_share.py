"""Nodes of a graph shared by processes, each of which computes the rows of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import distributed

from pygsampler._engine.checks import describe

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

__all__ = ["ProcessShare"]

# Rows on their way from one process to the others.
_SENT_BYTES = 64 << 20


class ProcessShare:
    """The share of one process of a group, all of which run the same layers in the same order.

    With it as a context, an error of one process ends the others, too, where they agree next.
    """

    def __init__(self, group: Any) -> None:
        """Takes True for all processes, or a process group of torch that this one is in."""
        if not distributed.is_available() or not distributed.is_initialized():
            raise ValueError(
                "group: expected torch.distributed.init_process_group() before, got no process "
                "group; leave group out in a single process"
            )
        whole = distributed.group.WORLD
        self._group: Any = whole if group is True else group
        if not isinstance(self._group, distributed.ProcessGroup):
            raise TypeError(
                f"group: expected True or a process group of torch, got {describe(group)}"
            )
        self.rank = distributed.get_rank(self._group)
        self.size = distributed.get_world_size(self._group)
        if self.rank < 0:
            raise ValueError("group: expected one that this process is in, got another")
        self._device = torch.device("cpu")
        # True once others wait for nothing, or nobody knows for what.
        self._is_over = False

    def __enter__(self) -> ProcessShare:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None:
            self.agree("the end")
        elif isinstance(error, Exception) and not self._is_over:
            self._gather((f"{kind.__name__}: {error}", None, None))

    def use(self, device: torch.device) -> None:
        """Takes the device of the layers; ValueError for one that the group does not send from."""
        # NCCL sends what GPUs have, others what the host has.
        is_nccl = distributed.get_backend(self._group) == "nccl"
        if is_nccl and device.type != "cuda":
            raise ValueError(
                f"group: expected a group of gloo for layers on {device}, got one of nccl; "
                'distributed.new_group(backend="gloo") makes one'
            )
        if is_nccl:
            self._device = device

    def bounds(self, count: int, cost: Callable[[int], int]) -> list[int]:
        """Returns where each process's nodes begin, and ``count``.

        ``cost`` is what the nodes before one take; each process gets about as much.
        """
        found = [0]
        for process in range(1, self.size):
            low, high, goal = found[-1], count, cost(count) * process
            while low < high:
                middle = (low + high) // 2
                if cost(middle) * self.size < goal:
                    low = middle + 1
                else:
                    high = middle
            found.append(low)
        return [*found, count]

    def node_range(self, bounds: list[int]) -> tuple[int, int]:
        """Returns the first node of this process, and the one behind its last."""
        return bounds[self.rank], bounds[self.rank + 1]

    def agree(self, step: str, value: Any = None) -> list[Any]:
        """Returns what all processes give in a step, in the order of their ranks.

        Raises RuntimeError where another process failed, ValueError where one is in another step.
        """
        answers = self._gather((None, step, value))
        for rank, (problem, _, _) in enumerate(answers):
            if problem is not None:
                self._is_over = True
                raise RuntimeError(f"inference: process {rank} of the group failed: {problem}")
        self.check_equal([each for _, each, _ in answers])
        return [each for _, _, each in answers]

    def check_equal(self, values: list[Any]) -> None:
        """Raises ValueError, in all processes, unless all of them have the same value."""
        for rank, value in enumerate(values):
            if value != values[0]:
                self._is_over = True
                raise ValueError(
                    "group: expected the same arguments in all processes, got "
                    f"{values[0]} in process 0 and {value} in process {rank}"
                )

    def _gather(self, value: Any) -> list[Any]:
        found: list[Any] = [None] * self.size
        # If this raises, no other process can be informed.
        self._is_over = True
        distributed.all_gather_object(found, value, group=self._group)
        self._is_over = False
        return found

    def exchange(self, table: Tensor, bounds: list[int]) -> None:
        """Fills a table of all nodes, of which each process has its own."""
        step = max(1, _SENT_BYTES // max(table[:1].numel() * table.element_size(), 1))
        for process in range(self.size):
            source = distributed.get_global_rank(self._group, process)
            last = bounds[process + 1]
            for first in range(bounds[process], last, step):
                part = table[first : min(first + step, last)]
                sent = part.to(self._device).contiguous()
                distributed.broadcast(sent, source, group=self._group)
                if process != self.rank:
                    part.copy_(sent)
