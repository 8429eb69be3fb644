"""Samples of each family have the bytes that they had in every build before."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.packaging import digests

KEPT: dict[str, str] = json.loads(digests.KEPT.read_text())


@pytest.fixture(scope="module")
def families() -> dict[str, Callable[[], str]]:
    return dict(digests.families())


@pytest.mark.parametrize("name", KEPT)
def test_digest_is_the_one_that_is_kept(name: str, families: dict[str, Callable[[], str]]) -> None:
    assert families[name]() == KEPT[name]


def test_every_family_is_kept(families: dict[str, Callable[[], str]]) -> None:
    assert list(families) == list(KEPT)


def test_check_finds_what_differs_or_is_left_out() -> None:
    assert digests.check(dict(KEPT)) == f"{len(KEPT)} families as kept; not run: none"
    for wrong in ({**KEPT, "ladies": "0"}, {"ladies": KEPT["ladies"]}, {**KEPT, "another": "0"}):
        with pytest.raises(
            SystemExit, match=r"^digests: expected all families as kept, got others"
        ):
            digests.check(wrong)


def test_digest_tells_arrays_apart_by_name_type_shape_and_value() -> None:
    import numpy as np

    array = np.arange(200)
    others = [array.astype("int32"), array.reshape(2, 100), array + 1, [array], {"x": array}]
    assert len({digests.digest(value) for value in [array, *others]}) == 6
    with pytest.raises(AssertionError, match="got 3 numbers"):
        digests.digest(array[:3])
