"""Numbers of batches, by which a loader of another framework gets its random numbers."""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

import torch
from torch.utils.data import get_worker_info

from pygsampler._adapters.shared_integers import SharedIntegers
from pygsampler._engine import memory
from pygsampler._engine.checks import integer
from pygsampler._engine.limits import MAX_BATCH, MAX_EPOCH
from pygsampler._sampling.batch_counter import SEED_MASK, fresh_seed, resolve_seed, signed_seed

_BATCH_BITS = MAX_BATCH.bit_length()
_UNSET = -1
# Places in the shared words. A chosen seed has a number for each pass, from 1 on; the last place
# counts the passes of all seeds.
_EPOCH, _SEED, _PASS, _BEGUN = range(4)


def batch_number_of_ids(ids: torch.Tensor) -> int:
    """The number of the batch of these ids, a tensor on the CPU, in an epoch that was set."""
    return _number(_content(ids)) & MAX_BATCH


class BatchNumber:
    """Gives each batch its (epoch, batch), the same for every number of workers.

    Loaders of other frameworks do not tell the number of the batch and of the epoch, but the
    content of the batch does: the batch's number is a hash of its ids. Ranks of a data-parallel run
    differ by it too. Without ``set_epoch`` the hash also takes in a count of the calls and the
    loader's epoch that ``begin_epoch`` announced. With a chosen seed epochs are counted, and a
    batch has the same numbers in every process and with any number of workers, which torch asks in
    turn. The default seed is torch's: an epoch is then identified by the state of torch's generator
    at its start and, in a worker process, by the worker's seed, which torch draws anew for each
    epoch. Torch's seed may be set after construction: it is read by ``set_epoch`` and
    ``begin_epoch`` and, without an epoch, for each batch, but never in a worker, where torch has
    another. A pickle has seed, epoch and the count.

    ``chosen`` is True if the seed was chosen, also when the default seed has been read before.
    """

    def __init__(self, seed: int | None, chosen: bool = True) -> None:
        self._follows = seed is None
        self._chosen = chosen and seed is not None
        self._count_from(0)
        self._pass = self._begun = 0
        # In shared memory, so that workers that live through several epochs see changes too.
        self._shared = SharedIntegers([_UNSET, signed_seed(resolve_seed(seed)), 0, 0])

    @property
    def seed(self) -> int:
        """The 64-bit seed of the next batch, ``0 <= seed < 2**64``."""
        return int(self._shared.tolist()[_SEED]) & SEED_MASK

    def set_seed(self, seed: int | None) -> None:
        """Sets the seed of later batches, and counts calls from 0; None follows torch's seed."""
        value = resolve_seed(seed)
        self._follows = seed is None
        self._chosen = not self._follows
        if self._chosen:
            self._pass = 0
        self._shared[_PASS] = 0
        self._restart(value)

    def set_epoch(self, epoch: int | None) -> None:
        """Makes later batches a function of ``epoch``; with None batches never repeat."""
        value = _UNSET if epoch is None else integer(epoch, "epoch", 0, MAX_EPOCH)
        self._follow()
        self._shared[_EPOCH] = value

    def begin_epoch(self, generator: torch.Generator | None) -> None:
        """Starts an epoch of a torch DataLoader with that generator in this process.

        Without ``set_epoch``, and without a chosen seed, its batches follow from the state of the
        generator, which torch's loader then advances: ``torch.manual_seed`` before an epoch repeats
        it.
        """
        self._follow()
        self._count_from(0)
        if self._chosen:
            *_, number, begun = self._shared.tolist()
            self._shared[_PASS] = self._pass = number + 1
            self._shared[_BEGUN] = self._begun = begun + 1
            return
        state = (torch.default_generator if generator is None else generator).get_state()
        digest = hashlib.blake2b(state.numpy().tobytes(), digest_size=8).digest()
        self._pass = int.from_bytes(digest, "little")

    @property
    def order(self) -> int | None:
        """The seed of the order of the current epoch; None for torch's order."""
        if not self._chosen:
            return None
        epoch, seed, number, _ = self._shared.tolist()
        which = (b"pass", number) if epoch == _UNSET else (b"epoch", epoch)
        text = b"order %d %s %d" % (seed, *which)
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")

    @property
    def chosen(self) -> bool:
        """True if somebody chose the seed, in this process or the one that this comes from."""
        return self._chosen

    def number(
        self, ids: torch.Tensor, more: tuple[bytes, torch.Tensor] | None = None
    ) -> tuple[int, int]:
        """(epoch, batch) of the batch of these ids, tensors on the CPU.

        ``more`` are ids with another meaning, and its name. The batch's seed is ``seed``, read
        after this.
        """
        content = _content(ids, more)
        epoch = int(self._shared.tolist()[_EPOCH])
        if epoch != _UNSET:
            return epoch, _number(content) & MAX_BATCH
        worker = get_worker_info()
        if worker is not None:
            return _of_call(content, *self._in_worker(worker))
        self._follow()
        call = next(self._calls)
        self._coming = call + 1
        return _of_call(content, call, self._pass)

    def next_number(
        self, ids: torch.Tensor, more: tuple[bytes, torch.Tensor] | None = None
    ) -> tuple[int, int] | None:
        """Returns what ``of`` would say of these ids if nothing comes between, outside workers.

        Nothing is counted. None where torch has another seed by now, which ``of`` would take.
        """
        content = _content(ids, more)
        epoch = int(self._shared.tolist()[_EPOCH])
        if epoch != _UNSET:
            return epoch, _number(content) & MAX_BATCH
        if self._follows and fresh_seed() != self.seed:
            return None
        return _of_call(content, self._coming, self._pass)

    def _in_worker(self, worker: Any) -> tuple[int, int]:
        """The number of this call in its epoch, and the epoch."""
        *_, number, begun = self._shared.tolist()
        if not number:
            # No pass of a chosen seed.
            return next(self._calls), worker.seed
        if begun != self._begun:
            # The worker lives on from another pass.
            self._begun = begun
            self._count_from(0)
        # Torch asks workers for batches in turn.
        return next(self._calls) * worker.num_workers + worker.id, number

    def copy(self) -> BatchNumber:
        """Another with the same numbers, whose epoch and seed are its own."""
        other = object.__new__(BatchNumber)
        state = {"_follows": self._follows, "_shared": self._shared.clone()}
        other.__setstate__({**self.__getstate__(), **state})
        return other

    def _follow(self) -> None:
        if self._follows and get_worker_info() is None:
            seed = fresh_seed()
            if seed != self.seed:
                self._restart(seed)

    def _restart(self, seed: int) -> None:
        self._shared[_SEED] = signed_seed(seed)
        self._count_from(0)

    def _count_from(self, call: int) -> None:
        # Threads that call at once each get a number of their own from `_calls`; `_coming` may lag
        # behind.
        self._calls, self._coming = itertools.count(call), call

    def __getstate__(self) -> dict[str, Any]:
        # The count can only be read by counting once more.
        calls = next(self._calls)
        self._count_from(calls)
        # Torch's seed is this process's: another one keeps what it is given here.
        return {**self.__dict__, "_calls": calls, "_follows": False}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._count_from(state["_calls"])


def _content(ids: torch.Tensor, more: tuple[bytes, torch.Tensor] | None = None) -> hashlib.blake2b:
    content = hashlib.blake2b(_bytes(ids), digest_size=8)
    if more is not None:
        name, others = more
        # The length keeps the two apart from another cut of the same numbers.
        content.update(b"%s %d " % (name, others.numel()))
        content.update(_bytes(others))
    return content


def _bytes(ids: torch.Tensor) -> memoryview | bytes:
    """Returns the bytes of a tensor on the CPU, for use at once."""
    size = ids.numel() * ids.element_size()
    if not size:
        return b""
    # A tensor without memory here, as in torch's FakeTensorMode, is refused below.
    address = ids.data_ptr() if ids.is_contiguous() and ids.is_cpu else 0
    if address:
        # NumPy's array and its copy take half as long as all of a small batch's number.
        return memory.memory_view(address, size)
    return ids.numpy().tobytes()


def _of_call(content: hashlib.blake2b, call: int, num_batches: int) -> tuple[int, int]:
    """(epoch, batch) of a batch that is none of an epoch, but the call of that number."""
    content.update(b"call %d of %d" % (call, num_batches))
    number = _number(content)
    return number >> _BATCH_BITS, number & MAX_BATCH


def _number(content: hashlib.blake2b) -> int:
    return int.from_bytes(content.digest(), "little")
