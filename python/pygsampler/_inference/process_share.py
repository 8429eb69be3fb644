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
    """The share of one process of a group, all of which run the same layers in the same order."""

    def __init__(self, group: Any, device: torch.device) -> None:
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
        # NCCL sends what GPUs have, others what the host has.
        is_nccl = distributed.get_backend(self._group) == "nccl"
        if is_nccl and device.type != "cuda":
            raise ValueError(
                f"group: expected a group of gloo for layers on {device}, got one of nccl; "
                'distributed.new_group(backend="gloo") makes one'
            )
        self._device = device if is_nccl else torch.device("cpu")

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

    def agree(self, value: Any) -> list[Any]:
        """Returns what all processes give here, in the order of their ranks."""
        found: list[Any] = [None] * self.size
        distributed.all_gather_object(found, value, group=self._group)
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
