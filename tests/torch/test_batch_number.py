"""``BatchNumber``: which batch of an epoch a tensor of ids is."""

from __future__ import annotations

import pytest
from partners import partner

torch = partner("torch")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from pygsampler._loading.batch_number import batch_of  # noqa: E402


def test_a_number_follows_from_values() -> None:
    ids = torch.arange(12).reshape(6, 2)[:, 0]
    assert not ids.is_contiguous()
    assert batch_of(ids) == batch_of(ids.clone()) != batch_of(ids[1:])
    assert batch_of(ids[:0]) == batch_of(torch.arange(0))


def test_ids_without_memory_on_the_host_are_refused() -> None:
    """Not read: an address of a device's is none here."""
    with pytest.raises(TypeError, match="meta"):
        batch_of(torch.arange(4, device="meta"))


@pytest.mark.filterwarnings("ignore:Accessing the data pointer of FakeTensor:UserWarning")
def test_ids_without_memory_anywhere_are_refused() -> None:
    with FakeTensorMode(), pytest.raises(RuntimeError):
        batch_of(torch.arange(4))
