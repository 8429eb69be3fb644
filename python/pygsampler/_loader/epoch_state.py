"""``EpochState``: the seed and the epoch of a loader's next ``iter()``, and where it goes on."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import torch

from pygsampler._engine.checks import describe, integer
from pygsampler._engine.library import call
from pygsampler._engine.limits import MAX_EPOCH
from pygsampler._loader.shards import EpochShard, Shards
from pygsampler._sampling.batch_counter import (
    SEED_MASK,
    fresh_seed,
    resolve_seed,
    signed_seed,
)
from pygsampler._sampling.plan import Plan

if TYPE_CHECKING:
    from pygsampler._loader.cache_tuner import CacheTuner
    from pygsampler._loader.prefetch_tuner import PrefetchTuner
    from pygsampler._loader.share_tuner import ShareTuner
    from pygsampler._loader.stats import EpochStats
    from pygsampler._sampling.sampler import Sampler

__all__ = ["EpochRun", "EpochState", "shuffle"]

_VERSION = 1


class EpochRun:
    """An epoch that an iterator goes through: its options, and how far it is.

    Options that are assigned to the loader meanwhile do not reach it.
    """

    __slots__ = (
        *("budget", "cache_tuner", "draws", "epoch", "gpu_share", "handed", "low", "prefetch"),
        *("seed", "shard", "share_tuner", "shuffle", "stats", "tuner"),
    )

    def __init__(self, epoch: int, seed: int, shard: EpochShard, shuffle: bool) -> None:
        self.epoch, self.seed, self.shard, self.shuffle = epoch, seed, shard, shuffle
        # The number of batches that the consumer had.
        self.handed = 0
        self.prefetch = 0
        self.low: int | None = None
        # The most bytes of batches ahead and the one at hand; None: as many as there are.
        self.budget: int | None = None
        self.gpu_share: float | None = None
        # None: nobody counts its batches.
        self.stats: EpochStats | None = None
        # Changes how many batches are ahead; None: that is fixed.
        self.tuner: PrefetchTuner | None = None
        # Gives features caches; None: they have those that they were given with.
        self.cache_tuner: CacheTuner | None = None
        # Chooses the share of later epochs; None: that is fixed.
        self.share_tuner: ShareTuner | None = None
        # All batches around edges if static, since they are drawn at once; for static batches with
        # labels that belong to seeds, the places of the labels.
        self.draws: Any = None

    def uncounted(self, epoch: int) -> EpochRun:
        """Returns a whole epoch with the options of this one, whose batches nobody counts."""
        run = EpochRun(epoch, self.seed, self.shard.restarted(), self.shuffle)
        run.prefetch, run.low, run.budget = self.prefetch, self.low, self.budget
        run.gpu_share, run.draws = self.gpu_share, self.draws
        return run


class EpochState:
    """The numbers of a loader's epochs, from a seed of its own, its sampler's or torch's.

    The thread that owns the loader changes it. Copies and pickles keep the seed as it is now, since
    that of torch is another one in another process, and have no epoch that goes on.
    """

    def __init__(
        self,
        sampler: Sampler[Any],
        seed: int | None,
        *,
        owns_sampler: bool,
        shuffle: bool,
        world_size: int,
        weights: str | None,
    ) -> None:
        self.sampler = sampler
        self.seed = sampler.seed if seed is None else seed
        self.shuffle = shuffle
        # The count of ``iter()``, until one is chosen.
        self.epoch = 0
        # The epoch that began last.
        self.run: EpochRun | None = None
        # True if the seed is torch's, asked for at each epoch, since nobody else sees the seed.
        self._follows = seed is None and owns_sampler
        # True if nobody chose the seed: each process has one of its own.
        self._is_drawn = seed is None and sampler._numbers.is_drawn
        self._is_counted = True
        # An epoch, None for any, and the batch that it begins with if it is the next one.
        self._resume: tuple[int | None, int] = None, 0
        self._world_size = world_size
        # The digest of the weights by which seeds are drawn, if any.
        self._weights = weights
        self.check_shuffle(shuffle)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_follows": False, "run": None}

    @property
    def is_resumed(self) -> bool:
        """True if the next epoch does not begin with its first batch."""
        return self._resume[1] > 0

    def skip(self, batches: int) -> None:
        """Has the next epoch, whichever it is, leave out so many batches."""
        self._resume = None, batches

    def set_epoch(self, epoch: int) -> None:
        """Chooses the ``epoch`` of the next ``iter()``."""
        self.epoch = integer(epoch, "epoch", 0, MAX_EPOCH)
        self._is_counted = False

    def set_seed(self, seed: int | None) -> None:
        """Takes another ``seed``, or torch's at each epoch for None, from epoch 0 on."""
        self._check_common(seed is None, self.shuffle)
        value = resolve_seed(seed)
        self._follows = self._is_drawn = seed is None
        self._is_counted = True
        self._reseed(value)

    def check_shuffle(self, shuffle: bool) -> None:
        """Raises ValueError where ``shuffle`` does not go with the seed or with weights."""
        if shuffle and self._weights is not None:
            raise ValueError(
                "shuffle: expected False with seed_weights, whose draws have a random order in "
                "each epoch, got True"
            )
        self._check_common(self._is_drawn, shuffle)

    def begin(self, shards: Shards, rank: int) -> EpochRun:
        """Begins the next epoch, from where it is to go on, and counts it."""
        if self._follows and (seed := fresh_seed()) != self.seed:
            self._reseed(seed)
        epoch = self.epoch
        shard = EpochShard(shards, rank, self._start_of(epoch))
        self.run = EpochRun(epoch, self.seed, shard, self.shuffle)
        self.epoch = (epoch + 1) % (MAX_EPOCH + 1)
        self._is_counted = True
        self._resume = None, 0
        return self.run

    def state_dict(self, shards: Shards) -> dict[str, Any]:
        """Returns the next batch of the epoch that began last, in numbers and strings."""
        epoch, start, run = self.epoch, self._start_of(self.epoch), self.run
        options = self._options(shards, self.shuffle)
        if run is not None:
            after = run.shard.after(run.handed)
            if after is None:
                epoch, start = (run.epoch + 1) % (MAX_EPOCH + 1), 0
            else:
                epoch, start = run.epoch, after
                # Options that were assigned meanwhile are those of the next one.
                options = self._options(run.shard.shards, run.shuffle)
        return {
            "version": _VERSION,
            "epoch": epoch,
            "start": start,
            "seed": self.seed,
            "sampler_seed": self.sampler.seed,
            "world_size": self._world_size,
            **options,
        }

    def load_state_dict(self, state: Any, shards: Shards, is_static: bool) -> None:
        """Goes on where the loader was that had the ``state``, after checking that it fits."""
        if is_static and isinstance(state, Mapping) and state.get("start"):
            raise ValueError(
                f"state: expected one between epochs with static=True, got one after "
                f"{state['start']} batches"
            )
        options = self._options(shards, self.shuffle)
        names = {"version", "epoch", "start", "seed", "sampler_seed", "world_size", *options}
        names.discard("seed_weights")
        if not isinstance(state, Mapping) or any(name not in state for name in names):
            raise TypeError(f"state: expected what state_dict() gave, got {describe(state)}")
        if state["version"] != _VERSION:
            raise ValueError(f"state: expected version {_VERSION}, got {state['version']!r}")
        if shards.shard_by == "seeds":
            options["world_size"] = self._world_size
        for name, value in {"seed_weights": None, **options}.items():
            other = state.get(name)
            if other == value:
                continue
            if name == "plan":
                raise ValueError(f"state: expected one of {self.sampler!r}, got another sampler's")
            if name == "seed_weights":
                raise ValueError("state: expected one of the same seed_weights, got one of others")
            raise ValueError(f"state: expected {name}={value!r}, got {other!r}")
        epoch = integer(state["epoch"], "state['epoch']", 0, MAX_EPOCH)
        start = integer(state["start"], "state['start']", 0)
        seed = integer(state["seed"], "state['seed']", 0, SEED_MASK)
        sampler_seed = integer(state["sampler_seed"], "state['sampler_seed']", 0, SEED_MASK)
        if sampler_seed != self.sampler.seed:
            self.sampler = self.sampler.with_seed(sampler_seed)
        self.seed = seed
        self._follows = self._is_drawn = self._is_counted = False
        self.epoch, self.run = epoch, None
        self._resume = epoch, start

    def _reseed(self, seed: int) -> None:
        self.sampler, self.seed = self.sampler.with_seed(seed), seed
        if self._is_counted:
            self.epoch = 0

    def _check_common(self, is_random: bool, shuffle: bool) -> None:
        """Raises ValueError where ranks would shuffle seeds by numbers of their own."""
        if self._world_size > 1 and is_random and (shuffle or self._weights is not None):
            raise ValueError(
                f"seed: expected an integer, the same on all {self._world_size} ranks, since the "
                "shuffled order depends on it; got None, for which each process takes its own"
            )

    def _start_of(self, epoch: int) -> int:
        """Returns the first batch of ``epoch``, if that is the next one."""
        number, start = self._resume
        return start if number in (None, epoch) else 0

    def _options(self, shards: Shards, shuffle: bool) -> dict[str, Any]:
        """Returns what must be equal where an epoch goes on, except for the graph."""
        weights = {} if self._weights is None else {"seed_weights": self._weights}
        return {
            "plan": _digest(self.sampler.plan),
            "shard_by": shards.shard_by,
            "num_seeds": shards.num_seeds,
            "batch_size": shards.batch_size,
            "drop_last": shards.drop_last,
            "shuffle": shuffle,
            **weights,
        }


def _digest(plan: Any) -> str:
    """Returns a digest of what is sampled."""
    return blake2b(_text(plan).encode(), digest_size=8).hexdigest()


def _text(plan: Any) -> str:
    """Returns a plan as text: the engine's, and tuples of those; others count by their type."""
    if isinstance(plan, Plan):
        return plan.document
    if isinstance(plan, tuple):
        return f"({', '.join(map(_text, plan))})"
    return repr(plan) if isinstance(plan, str | int) else type(plan).__qualname__


def shuffle(values: torch.Tensor, seed: int, epoch: int) -> torch.Tensor:
    """A copy of the int32 or int64 values, in the order of the epoch."""
    order = values.clone()
    bits = 8 * order.element_size()
    call("Shuffle", order.data_ptr(), order.numel(), bits, signed_seed(seed), epoch)
    return order
