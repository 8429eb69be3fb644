"""Loaders on a device have batches with the recorded bytes; static batches are trimmed."""

from __future__ import annotations

import pytest

from tests.golden import digests


# A GPU has them from ``python tests/golden --check``, with the other results.
@pytest.mark.backends("emulator")
@pytest.mark.parametrize("form", [None, "static"])
def test_batches_of_loaders_are_as_recorded(host_tensors: None, form: str | None) -> None:
    pytest.importorskip("torch", reason="needs torch")
    cases = digests.loaded(static=True) if form else digests.loaded(emulated=True)
    assert len(cases) > 10
    assert digests.differing(cases, device="cuda", **({"form": form} if form else {})) == []
