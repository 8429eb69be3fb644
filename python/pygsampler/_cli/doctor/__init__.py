"""Looks at an installation: what is there, whether it works, and what to do where it does not.

``python -m pygsampler doctor`` prints it; :func:`examine` is the same for programs. Nothing is
changed, and no framework is imported. Each part is a function that returns a
:class:`~pygsampler._cli.doctor.report.Section`; a part that raises is a problem of the report and
not its end.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from pygsampler._cli.doctor.compiler import compiler
from pygsampler._cli.doctor.environment import extension, machine, versions
from pygsampler._cli.doctor.gpu import cuda
from pygsampler._cli.doctor.remedies import remedy
from pygsampler._cli.doctor.report import Problem, Report, Section
from pygsampler._cli.doctor.self_test import self_test

__all__ = ["Problem", "Report", "Section", "examine"]


def __dir__() -> list[str]:
    return sorted(__all__)


# In the order in which they are shown. The second half needs the extension.
_ALWAYS: tuple[Callable[[], Section], ...] = (versions, extension)
if sys.platform == "linux":
    _ALWAYS += (machine,)
_WITH_EXTENSION: tuple[Callable[[], Section], ...] = (cuda, compiler, self_test)


def examine() -> Report:
    """Returns a full report of this installation; it takes a second or two."""
    sections = [_section_of(part) for part in _ALWAYS]
    if not any(section.problems for section in sections):
        sections += [_section_of(part) for part in _WITH_EXTENSION]
    return Report(tuple(sections))


def _section_of(part: Callable[[], Section]) -> Section:
    try:
        return part()
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        return Section(part.__name__, {}, problems=(Problem(what, remedy(what)),))
