"""Which seeds belong to which batch of which rank: exact sharding by arithmetic alone."""

from __future__ import annotations

__all__ = ["Shards"]


class Shards:
    """The cut of ``num_seeds`` positions into batches for ``world_size`` ranks.

    Invariants, all tested: every position is in exactly one batch of one rank (with ``drop_last``
    in at most one); every rank has the same number ``steps`` of batches, since a rank that has one
    batch less leaves the others waiting in their next all-reduce; no batch is empty or larger than
    ``batch_size``; without ``drop_last`` the ranks' shares differ by at most one seed.

    Rank r owns a contiguous share. Where a share would fill exactly one batch less than the
    largest share does, its last full batch hands one seed to a batch of its own.

    Raises ``ValueError`` where no such cut exists: fewer seeds than ranks, or batches of one seed
    and a number of seeds that ``world_size`` does not divide (``drop_last`` cures the latter).
    """

    __slots__ = ("batch_size", "drop_last", "num_seeds", "steps", "world_size")

    def __init__(
        self, num_seeds: int, batch_size: int, world_size: int = 1, drop_last: bool = False
    ) -> None:
        self.num_seeds = num_seeds
        self.batch_size = batch_size
        self.world_size = world_size
        self.drop_last = drop_last
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
