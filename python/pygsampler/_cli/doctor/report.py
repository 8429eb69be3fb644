"""Findings of the doctor, as facts for programs and as text for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple


class Problem(NamedTuple):
    """A feature that should work and does not, and the way out for the user."""

    what: str
    remedy: str


@dataclass(frozen=True)
class Section:
    """A part of a report.

    ``facts`` holds what JSON can hold; ``lines`` is the same for people, as pairs of a label and
    a text. A note is worth knowing and no problem.
    """

    name: str
    facts: dict[str, Any]
    lines: tuple[tuple[str, str], ...] = ()
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def heading(self) -> str:
        """The name as people read it."""
        return self.name.replace("_", "-")


@dataclass(frozen=True)
class Report:
    """All sections, in the order in which they are shown."""

    sections: tuple[Section, ...]

    @property
    def ok(self) -> bool:
        """True if there is no problem."""
        return not self.problems

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problems of all sections."""
        return tuple(problem for section in self.sections for problem in section.problems)

    def json(self) -> dict[str, Any]:
        """Only what ``json.dumps`` takes: facts by section, and problems and notes of all."""
        return {
            "ok": self.ok,
            **{section.name: section.facts for section in self.sections},
            "problems": [problem._asdict() for problem in self.problems],
            "notes": [note for section in self.sections for note in section.notes],
        }

    def text(self) -> str:
        """The report in some dozen lines, with the problems, or their absence, at the end."""
        lines = []
        width = max((len(label) for part in self.sections for label, _ in part.lines), default=0)
        for section in self.sections:
            lines.append(section.heading)
            lines += [f"  {label:{width}}  {text}".rstrip() for label, text in section.lines]
            lines += [f"  {note}" for note in section.notes]
        lines.append("")
        if self.ok:
            lines.append("no problem found")
        for problem in self.problems:
            lines += [f"problem: {problem.what}", f"    what to do: {problem.remedy}"]
        return "\n".join(lines)


def size(count: int) -> str:
    """Bytes for people: ``"15.6 GiB"``."""
    value, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
