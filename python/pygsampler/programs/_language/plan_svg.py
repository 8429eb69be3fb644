"""A program's plan as a picture: SVG, each node below those that it takes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

__all__ = ["plan_svg"]

_INPUT = re.compile(r"%(\d+)")
# Sizes in pixels: a character of the font, a box, and what is between boxes.
_CHARACTER, _HEIGHT, _ACROSS, _DOWN = 6.7, 22, 14, 26
_MOST_CHARACTERS = 34
# The operators that draw, and the looks of their boxes, of values computed in place, of values
# computed once per graph, and of all others.
_DRAWS = ("individual", "collective", "draw", "roots", "walk", "random")
_LOOKS = {
    "draws": 'fill="#ffe0b0" stroke="#a06000"',
    "inline": 'fill="#ffffff" stroke="#808080" stroke-dasharray="3 2"',
    "once": 'fill="#d8f0d8" stroke="#308030"',
    "plain": 'fill="#e4ecf8" stroke="#4060a0"',
}


class _Box(NamedTuple):
    text: str
    look: str
    inputs: list[int]
    level: int


def _boxes(lines: Sequence[str]) -> dict[int, _Box]:
    """The nodes of a plan's lines by number; -1 is what is returned."""
    made: dict[int, _Box] = {}
    for line in lines:
        line, _, mark = line.strip().partition("  # ")
        line, mark = line.strip(), mark.strip()
        if not line.startswith(("%", "return")):
            continue
        if line.startswith("return"):
            number, text = -1, line
        else:
            name, _, text = line.partition(" = ")
            number = int(name[1:])
        # Names, which may have anything in them, stand in quotes.
        bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", text)
        inputs = [int(found) for found in _INPUT.findall(bare)]
        inputs = [i for i in dict.fromkeys(inputs) if i in made]
        op = text.split(" ")[0]
        look = "plain"
        if op in _DRAWS:
            look = "draws"
        elif mark.startswith("made where"):
            look = "inline"
        elif mark.startswith("once"):
            look = "once"
        level = 1 + max((made[i].level for i in inputs), default=-1)
        label = text if number < 0 else f"{number}: {text}"
        if len(label) > _MOST_CHARACTERS:
            label = label[: _MOST_CHARACTERS - 1] + "\u2026"
        made[number] = _Box(label, look, inputs, level)
    return made


def plan_svg(lines: Sequence[str]) -> str:
    """Returns the SVG of a plan, from its lines with the marks of compiler passes behind them."""
    boxes = _boxes(lines)
    levels: dict[int, list[int]] = {}
    for number, box in boxes.items():
        levels.setdefault(box.level, []).append(number)
    middle: dict[int, float] = {}
    left: dict[int, float] = {}
    width = 0.0

    def wish(number: int) -> float:
        """Beneath what it takes, as far as there is room."""
        above = [middle[i] for i in boxes[number].inputs]
        return sum(above) / len(above) if above else 0.0

    for level in sorted(levels):
        x = _ACROSS / 2
        for number in sorted(levels[level], key=wish):
            own = _wide(boxes[number])
            left[number] = max(x, wish(number) - own / 2)
            middle[number] = left[number] + own / 2
            x = left[number] + own + _ACROSS
        width = max(width, x)
    parts = []
    for number, box in boxes.items():
        top = _top(box)
        for i in box.inputs:
            begin = _top(boxes[i]) + _HEIGHT
            half = (begin + top) / 2
            parts.append(
                f'<path d="M{middle[i]:.0f} {begin:.0f}C{middle[i]:.0f} {half:.0f} '
                f'{middle[number]:.0f} {half:.0f} {middle[number]:.0f} {top:.0f}" '
                'fill="none" stroke="#909090"/>'
            )
    for number, box in boxes.items():
        parts.append(
            f'<rect x="{left[number]:.0f}" y="{_top(box):.0f}" width="{_wide(box):.0f}" '
            f'height="{_HEIGHT}" rx="4" {_LOOKS[box.look]}/><text x="{middle[number]:.0f}" '
            f'y="{_top(box) + 15:.0f}" text-anchor="middle">{escape(box.text)}</text>'
        )
    height = (max(levels, default=0) + 1) * (_HEIGHT + _DOWN)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="monospace" font-size="11">'
        f"{''.join(parts)}</svg>"
    )


def _wide(box: _Box) -> float:
    return _CHARACTER * len(box.text) + 12


def _top(box: _Box) -> float:
    return _DOWN / 2 + box.level * (_HEIGHT + _DOWN)
