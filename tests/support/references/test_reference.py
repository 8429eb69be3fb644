"""The reference itself, against published answers."""

from __future__ import annotations

import pytest
import reference


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        (
            (0, 0, 0, 0),
            (0, 0),
            (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8),
        ),
        (
            (0xFFFFFFFF,) * 4,
            (0xFFFFFFFF,) * 2,
            (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
        ),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_gives_the_answers_of_random123(counter, key, words):
    assert reference.philox4x32(counter, key) == words


def test_splitmix_gives_the_published_sequence():
    # The first outputs for seed 1234567, as the xoshiro authors' C code prints them.
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    state = 1234567
    for value in expected:
        state = (state + reference.GAMMA) & reference.MASK64
        assert reference.splitmix64(state) == value


@pytest.mark.parametrize("degree", range(12))
@pytest.mark.parametrize("fanout", range(8))
def test_choosing_without_replacement_gives_distinct_positions(degree, fanout):
    for state in range(20):
        chosen = reference.choose(degree, fanout, False, reference.splitmix64(state))
        assert len(set(chosen)) == len(chosen) == min(degree, fanout)
        assert all(0 <= position < degree for position in chosen)
