from __future__ import annotations

import pytest

import pygsampler as pgs
from pygsampler import errors
from pygsampler._engine import library


@pytest.mark.parametrize(
    "kind", [TypeError, ValueError, IndexError, OverflowError, MemoryError, pgs.errors.ClosedError]
)
def test_engine_errors_become_their_python_classes(kind):
    error = errors.from_engine(f"{kind.__name__}: seeds[3]: expected this, got that: so")
    assert type(error) is kind
    assert str(error) == "seeds[3]: expected this, got that: so"


@pytest.mark.parametrize("text", ["", "nothing to sort by", "NoSuchKind: x", "SystemExit: 3"])
def test_other_engine_errors_are_errors_with_all_their_text(text):
    error = errors.from_engine(text)
    assert type(error) is pgs.Error
    assert str(error) == text


def test_own_errors_have_one_base():
    assert issubclass(pgs.errors.CudaError, pgs.Error)
    assert issubclass(pgs.errors.ClosedError, pgs.Error)
    assert issubclass(pgs.Error, Exception)


def test_a_call_raises_the_class_that_the_engine_names():
    with pytest.raises(ValueError, match=r"symbol: expected a known name, got .nothing."):
        library.call("Symbol", "nothing")


def test_dead_handles_are_refused():
    with pytest.raises(pgs.errors.ClosedError):
        library.call("Wait", 1 << 60, 0)
    assert library.call("Cancel", 1 << 60) == 0
    assert library.call("GraphClose", 1 << 60) == 0
    assert library.call("SamplerClose", 1 << 60) == 0
