"""``Group``: the messages of processes to each other, by ``torch.distributed``."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

# A thread of Gloo lets go of a collective's tensors some time after the call that waited for it is
# done. Where nobody else has them it waits for Python's lock, which PyTorch (2.2 for one) holds
# while a destroyed group waits for its threads, and which nobody gets once Python has ended. Here
# somebody has them, without their memory.
_SHELLS: deque[Any] = deque(maxlen=256)


class Group:
    """Messages between the processes of a group.

    Parameters
    ----------
    what : str
        Who asks, for errors.
    group : torch.distributed.ProcessGroup, optional
        Of Gloo or NCCL. By default a new one of Gloo with all processes, which therefore all make
        one.
    timeout : float
        Seconds after which a process that does not come is an error on all others; of a new group.

    Raises
    ------
    RuntimeError
        Where ``torch.distributed`` has not been initialised.
    ValueError
        For a timeout that is none, and a group of another backend or without this process.
    """

    def __init__(self, what: str, group: Any, timeout: float) -> None:
        import torch
        import torch.distributed as dist

        if not dist.is_available() or not dist.is_initialized():
            raise RuntimeError(
                f"{what}: expected an initialised torch.distributed, got none; start with "
                "torchrun and call torch.distributed.init_process_group()"
            )
        if not timeout > 0:
            raise ValueError(f"timeout: expected seconds > 0, got {timeout!r}")
        self._own = group is None
        if group is None:
            # One of our own heeds the timeout, and asks nothing of a GPU.
            group = dist.new_group(backend="gloo", timeout=timedelta(seconds=timeout))
        self._group = group
        self.rank, self.size = int(dist.get_rank(group)), int(dist.get_world_size(group))
        if self.rank < 0:
            raise ValueError("group: expected one that this process is in, got another")
        backend = dist.get_backend(group)
        if backend not in ("gloo", "nccl"):
            raise ValueError(f"group: expected one of Gloo or NCCL, got {backend}")
        self._device = (
            torch.device("cpu")
            if backend == "gloo"
            else torch.device("cuda", torch.cuda.current_device())
        )

    def close(self) -> None:
        """Destroys the group, where it is a new one."""
        import torch.distributed as dist

        group, self._group = self._group, None
        if self._own and group is not None and dist.is_initialized():
            dist.destroy_process_group(group)

    def sizes(self, sizes: Sequence[int], state: int) -> tuple[list[int], list[int]]:
        """The sizes of what others send here, and their states."""
        import torch

        mine = torch.tensor([[size, state] for size in sizes], dtype=torch.int64)
        theirs = torch.empty_like(mine, device=self._device)
        self._all_to_all(theirs, mine)
        columns: list[list[int]] = theirs.T.tolist()
        return columns[0], columns[1]

    def swap(self, messages: Sequence[Any], come: Sequence[int]) -> list[Any]:
        """What others send here, of those sizes."""
        import torch

        from pygsampler._core.memories import owned_view

        flat = bytearray().join(messages)
        # A tensor of no bytes has no buffer to be made of.
        out = (
            torch.frombuffer(flat, dtype=torch.uint8) if flat else torch.empty(0, dtype=torch.uint8)
        )
        into = torch.empty(sum(come), dtype=torch.uint8, device=self._device)
        self._all_to_all(into, out, list(come), [len(message) for message in messages])
        here = into.cpu()
        views: list[Any] = []
        at = here.data_ptr()
        for size in come:
            views.append(owned_view(at, size, here) if size else b"")
            at += size
        return views

    def gather(self, mine: Any) -> list[Any]:
        """What each process has, of what JSON writes: tuples come as lists."""
        message = json.dumps(mine).encode()
        come, _ = self.sizes([len(message)] * self.size, 0)
        return [json.loads(bytes(one)) for one in self.swap([message] * self.size, come)]

    def _all_to_all(
        self, into: Any, out: Any, come: list[int] | None = None, go: list[int] | None = None
    ) -> None:
        import torch.distributed as dist

        theirs, mine = (tensor.new_empty(0).set_(tensor) for tensor in (into, out.to(self._device)))
        _SHELLS.extend((theirs, mine))
        dist.all_to_all_single(theirs, mine, come, go, group=self._group)
        if self._device.type == "cpu":
            theirs.set_()
            mine.set_()
