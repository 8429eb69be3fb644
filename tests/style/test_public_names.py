"""The public surface: how many names there are is held by `limits`, here is which modules count.

Other tests hold that public names exist (tests/packaging) and have a page (tests/docs).
"""

from __future__ import annotations

import pytest

from tests.style import public
from tests.style.findings import ROOT

pytestmark = pytest.mark.once


def test_every_public_module_lists_its_names() -> None:
    lists = public.names(ROOT, programs=True)
    assert all(lists.values()), lists


def test_every_public_name_is_defined_in_the_package() -> None:
    missing = [
        f"{module}.{name}"
        for module, names in public.names(ROOT, programs=True).items()
        for name in names
        if public.definition(ROOT, module, name) is None
    ]
    assert missing == []
