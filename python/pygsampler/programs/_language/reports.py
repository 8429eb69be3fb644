"""Reports of ``Program.profile`` and ``Program.explain``: texts, which notebooks show with more."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from pygsampler.programs._language.plan_svg import plan_svg


class Profile(str):
    """A report of ``Program.profile``: a text, and the times in it.

    Attributes
    ----------
    microseconds : dict of str to float
        Of each operator, by its line, and of writing the batch, by the last one.
    """

    __slots__ = ("microseconds",)

    microseconds: dict[str, float]

    @classmethod
    def _from_times(cls, lines: Sequence[str], times: Sequence[float]) -> Profile:
        total = sum(times)
        rows = [f"{'us':>9}  share"]
        rows += [
            f"{us:9.1f}  {us / max(total, 1e-9):5.1%}  {line}"
            for line, us in zip(lines, times, strict=True)
            if us > 0
        ]
        made = cls("\n".join([*rows, f"{total:9.1f}  in all"]))
        made.microseconds = dict(zip(lines, times, strict=True))
        return made

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self)}</pre>"


class Explanation(str):
    """A report of ``Program.explain``: a text, which notebooks show with a drawing of the plan.

    Attributes
    ----------
    svg : str
        The plan as it runs, a picture: boxes with dashed edges are computed where they are used,
        green boxes once per graph, and orange boxes draw.
    """

    __slots__ = ()

    @property
    def svg(self) -> str:
        before, _, _ = self.partition("\n\nruns as ")
        return plan_svg(before.split("\n\n")[-1].split("\n"))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"{self.svg}<pre>{escape(self)}</pre>"
