"""Laws of the cut of seeds into batches and ranks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pygsampler._loader.shards import Shards

cuts = st.tuples(st.integers(0, 300), st.integers(1, 40), st.integers(1, 12), st.booleans())


@given(cuts)
def test_every_seed_in_one_batch_and_equal_steps(cut: tuple[int, int, int, bool]) -> None:
    num_seeds, batch_size, world_size, drop_last = cut
    try:
        shards = Shards(num_seeds, batch_size, world_size, drop_last)
    except ValueError:
        too_few = 0 < num_seeds < world_size
        odd = batch_size == 1 and num_seeds % world_size and not drop_last
        assert too_few or odd
        return
    taken: list[int] = []
    shares = []
    for rank in range(world_size):
        before = len(taken)
        for step in range(shards.steps):
            start, end = shards.bounds(rank, step)
            assert 0 < end - start <= batch_size
            if drop_last:
                assert end - start == batch_size
            taken.extend(range(start, end))
        shares.append(len(taken) - before)
    assert len(set(taken)) == len(taken)
    assert max(shares) - min(shares) <= 1
    if drop_last:
        assert shards.steps == num_seeds // world_size // batch_size
        assert all(0 <= seed < num_seeds for seed in taken)
    else:
        assert sorted(taken) == list(range(num_seeds))


def test_one_rank_cuts_like_a_plain_loop() -> None:
    shards = Shards(10, 4)
    assert [shards.bounds(0, step) for step in range(shards.steps)] == [(0, 4), (4, 8), (8, 10)]


def test_a_share_that_is_short_of_a_batch_borrows_a_seed() -> None:
    shards = Shards(9, 4, world_size=2)
    assert shards.steps == 2
    assert [shards.bounds(0, step) for step in (0, 1)] == [(0, 4), (4, 5)]
    assert [shards.bounds(1, step) for step in (0, 1)] == [(5, 8), (8, 9)]


def test_where_no_exact_cut_exists() -> None:
    with pytest.raises(ValueError, match=r"world_size: .* got 4 ranks for 3 seeds"):
        Shards(3, 2, world_size=4)
    with pytest.raises(ValueError, match="batch_size: expected at least 2"):
        Shards(5, 1, world_size=2)
    assert Shards(5, 1, world_size=2, drop_last=True).steps == 2
    assert Shards(0, 1, world_size=4).steps == 0
