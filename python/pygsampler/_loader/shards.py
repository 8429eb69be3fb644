"""Shards: the seeds of each batch of each rank, exactly, by arithmetic alone."""

from __future__ import annotations

from typing import Any

from pygsampler._engine.checks import describe

__all__ = ["EpochShard", "Shards", "check_shard_by"]

# Ways of dealing seeds out to ranks.
DEALS = "seeds", "batches"


def check_shard_by(shard_by: Any) -> str:
    """Returns the way in which seeds are shared out to ranks, checked."""
    if shard_by not in DEALS:
        raise ValueError(f"shard_by: expected one of {DEALS}, got {describe(shard_by)}")
    return str(shard_by)


class Shards:
    """The cut of ``num_seeds`` positions into batches for ``world_size`` ranks.

    Dealt out as ``"batches"``, batch b of a single process is that of rank b mod ``world_size``: so
    the batches of all ranks are the same for any number of them, and some rank may have one more
    than another. ``steps`` is the most that a rank has.

    Dealt out as ``"seeds"``, invariants, all tested: every position is in exactly one batch of one
    rank (with ``drop_last`` in at most one); every rank has the same number ``steps`` of batches,
    since a rank that has one batch less leaves the others waiting in their next all-reduce; no
    batch is empty or larger than ``batch_size``; without ``drop_last`` the ranks' shares differ by
    at most one seed.

    Rank r owns a contiguous share. If a share would fill exactly one batch less than the largest
    share, its last full batch hands one seed to an additional batch.

    Raises ``ValueError`` where no such cut exists: fewer seeds than ranks, or batches of one seed
    and a number of seeds that ``world_size`` does not divide (``drop_last`` cures the latter).
    """

    __slots__ = (
        "batch_size",
        "batches",
        "drop_last",
        "num_seeds",
        "shard_by",
        "steps",
        "world_size",
    )

    def __init__(
        self,
        num_seeds: int,
        batch_size: int,
        world_size: int = 1,
        drop_last: bool = False,
        shard_by: str = "seeds",
    ) -> None:
        self.num_seeds = num_seeds
        self.batch_size = batch_size
        self.world_size = world_size
        self.drop_last = drop_last
        self.shard_by = shard_by
        # The number of batches of all ranks, if whole batches are dealt out.
        self.batches = num_seeds // batch_size if drop_last else -(-num_seeds // batch_size)
        if shard_by == "batches":
            self.steps = -(-self.batches // world_size)
            return
        smallest, rest = divmod(num_seeds, world_size)
        if num_seeds and not smallest:
            raise ValueError(
                f"world_size: expected at most one rank for each seed, "
                f"got {world_size} ranks for {num_seeds} seeds"
            )
        if drop_last:
            self.steps = smallest // batch_size
            return
        largest = smallest + (1 if rest else 0)
        self.steps = -(-largest // batch_size)
        if self.steps > smallest:
            raise ValueError(
                f"batch_size: expected at least 2 where world_size ({world_size}) does not divide "
                f"the number of seeds ({num_seeds}), got {batch_size}: some rank would have "
                f"a batch more than another; use drop_last=True or another batch size"
            )

    def with_size(self, **sizes: Any) -> Shards:
        """Returns the cut with another ``batch_size`` or ``drop_last``."""
        known = {"batch_size": self.batch_size, "drop_last": self.drop_last, **sizes}
        return Shards(self.num_seeds, world_size=self.world_size, shard_by=self.shard_by, **known)

    def bounds(self, rank: int, step: int) -> tuple[int, int]:
        """First and one past the last position of the batch that ``rank`` takes at ``step``."""
        smallest, rest = divmod(self.num_seeds, self.world_size)
        first = rank * smallest + min(rank, rest)
        end = first + smallest + (1 if rank < rest else 0)
        start = first + step * self.batch_size
        if self.drop_last:
            return start, start + self.batch_size
        if end - first == (self.steps - 1) * self.batch_size:
            if step == self.steps - 1:
                return end - 1, end
            if step == self.steps - 2:
                return start, end - 1
        return start, min(start + self.batch_size, end)


class EpochShard:
    """The batches that a rank takes in an epoch: ``steps`` of them, from ``start`` on.

    ``start`` counts the batches of all ranks where those are dealt out, else those of each rank.
    """

    __slots__ = ("_first", "_rank", "shards", "start", "steps")

    def __init__(self, shards: Shards, rank: int, start: int = 0) -> None:
        self.shards, self._rank, self.start = shards, rank, start
        ranks = shards.world_size
        if shards.shard_by == "batches":
            # The first from start on that is this rank's.
            self._first = start + (rank - start) % ranks
            self.steps = max(-(-(shards.batches - self._first) // ranks), 0)
        else:
            self._first = start
            self.steps = max(shards.steps - start, 0)

    def restarted(self) -> EpochShard:
        """Returns the rank's batches from the first one on."""
        return EpochShard(self.shards, self._rank)

    def number(self, step: int) -> int:
        """The number of the batch among those of all ranks."""
        ranks = self.shards.world_size
        if self.shards.shard_by == "batches":
            return self._first + step * ranks
        return (self._first + step) * ranks + self._rank

    def bounds(self, step: int) -> tuple[int, int]:
        """First and one past the last position of a batch's seeds."""
        shards = self.shards
        if shards.shard_by == "seeds":
            return shards.bounds(self._rank, self._first + step)
        start = self.number(step) * shards.batch_size
        return start, min(start + shards.batch_size, shards.num_seeds)

    def after(self, steps: int) -> int | None:
        """Returns the batch at which an epoch goes on after ``steps`` batches of each rank.

        It is None if no rank has more.
        """
        if self.shards.shard_by == "batches":
            start, end = self.start + steps * self.shards.world_size, self.shards.batches
        else:
            start, end = self.start + steps, self.shards.steps
        return start if start < end else None
