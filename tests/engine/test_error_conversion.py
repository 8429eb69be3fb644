"""Errors of a block become other errors, and what its frames refer to is freed at once."""

from __future__ import annotations

import contextlib
import weakref

import pytest

from pygsampler._engine.error_conversion import ErrorConversion


class Batch:
    """An object of a frame that an exception leaves."""


def convert(error: Exception) -> Exception | None:
    return KeyError(str(error)) if isinstance(error, ValueError) else None


@pytest.mark.parametrize("chained", [False, True])
def test_conversion_raises_the_other_error(chained: bool) -> None:
    with pytest.raises(KeyError, match="text") as caught, ErrorConversion(convert, chained=chained):
        raise ValueError("text")
    assert isinstance(caught.value.__context__, ValueError)
    assert caught.value.__cause__ is (caught.value.__context__ if chained else None)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("error", [TypeError("text"), KeyboardInterrupt()])
def test_conversion_leaves_errors_that_it_has_no_other_for(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, ErrorConversion(convert):
        raise error
    assert caught.value is error


@pytest.mark.usefixtures("no_collections")
@pytest.mark.parametrize("error", [TypeError, ValueError])
def test_conversion_leaves_no_reference_cycle(error: type[Exception]) -> None:
    batches = []

    def fail() -> None:
        batch = Batch()
        batches.append(weakref.ref(batch))
        with ErrorConversion(convert):
            raise error("text")

    with contextlib.suppress(KeyError, TypeError):
        fail()
    assert batches[0]() is None
