"""``Group``: the messages of processes to each other, by ``torch.distributed``."""

from __future__ import annotations

import json
import logging
import time
import weakref
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

# A thread of Gloo releases a collective's tensors some time after the call that waited for it. If
# it holds the last reference, it waits for Python's lock, which PyTorch (2.2 for one) holds while a
# destroyed group waits for its threads, and which is unavailable once Python has ended. The deque
# has further references, without the tensors' memory.
_SHELLS: deque[Any] = deque(maxlen=256)

_log = logging.getLogger(__name__)

# Groups that this process has made in a world, by its store: all make the same ones, in one order.
# In another world they are counted anew, as by torch: other processes may be new there.
_MEETINGS: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
# Between two looks at who has come, in seconds: first, and at most.
_LOOK, _LONGEST_LOOK = 0.002, 0.1
# Seconds after which it is said for whom all wait.
_LONG = 10.0


def _meet(what: str, wait: float) -> None:
    """Returns when all processes have called it; TimeoutError after that many seconds."""
    from torch.distributed import distributed_c10d

    store = distributed_c10d._get_default_store()
    rank, size = distributed_c10d.get_rank(), distributed_c10d.get_world_size()
    count = _MEETINGS.get(store, 0)
    place = f"pygsampler/{count}"
    own = f"{place}/{rank}"
    # Counters, which every store of every version of torch can be asked for without a wait.
    store.add(own, 1)
    try:
        _wait_for(what, wait, store, place, [other for other in range(size) if other != rank])
    except BaseException:
        # Whoever comes late is not to think that this one waits; the store may be gone as well.
        with suppress(Exception):
            store.add(own, -1)
        raise
    _MEETINGS[store] = count + 1


def _wait_for(what: str, wait: float, store: Any, place: str, missing: list[int]) -> None:
    size = len(missing) + 1
    begin, look, said = time.monotonic(), _LOOK, False
    while True:
        missing = [other for other in missing if store.add(f"{place}/{other}", 0) < 1]
        waited = time.monotonic() - begin
        if not missing:
            return
        ranks = f"rank{'s' * (len(missing) > 1)} {', '.join(map(str, missing))}"
        if waited >= _LONG and not said:
            _log.warning("%s: %g s, still waiting for %s", what, _LONG, ranks)
            said = True
        if waited >= wait:
            raise TimeoutError(
                f"{what}: expected all {size} processes within {wait:g} s, got nothing from {ranks}"
            )
        time.sleep(min(look, wait - waited))
        look = min(2 * look, _LONGEST_LOOK)


class ProcessGroup:
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
    wait : float, optional
        Seconds for all processes to come to make a new group; ``timeout`` by default.

    Raises
    ------
    RuntimeError
        Where ``torch.distributed`` has not been initialised.
    TimeoutError
        Where processes have not come to make the new group: it names them.
    ValueError
        For a timeout that is none, and a group of another backend or without this process.
    """

    def __init__(self, what: str, group: Any, timeout: float, wait: float | None = None) -> None:
        import torch
        import torch.distributed as dist

        if not dist.is_available() or not dist.is_initialized():
            raise RuntimeError(
                f"{what}: expected an initialised torch.distributed, got none; start with "
                "torchrun and call torch.distributed.init_process_group()"
            )
        wait = timeout if wait is None else wait
        for name, seconds in (("timeout", timeout), ("wait", wait)):
            if not seconds > 0:
                raise ValueError(f"{name}: expected seconds > 0, got {seconds!r}")
        self._own = group is None
        if group is None:
            # torch's own wait says neither who is missing, nor heeds Ctrl-C.
            _meet(what, wait)
            # One of our own heeds the timeout, and asks nothing of a GPU.
            group = dist.new_group(backend="gloo", timeout=timedelta(seconds=timeout))
            # One that closed at once would end connections that another is still making.
            dist.barrier(group=group)
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
        """Sends messages to the others and returns theirs, of the sizes ``come``."""
        import torch

        from pygsampler._engine.memory import buffer_view

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
            views.append(buffer_view(at, size, here) if size else b"")
            at += size
        return views

    def gather(self, mine: Any) -> list[Any]:
        """Returns the values of all processes, sent as JSON: tuples come as lists."""
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
