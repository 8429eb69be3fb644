"""The documentation site in a browser: no page overflows, pictures follow a dark page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.support.browser import CHROMIUM, measure
from tests.support.partners import lack

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "site"
PICTURE = re.compile('<img |<figure class="drawing"')

# An element is measured where no box around it scrolls. Types in the reference are descriptions,
# which may break between words; any other code in a cell stays in one line.
OVERFLOW = """
const page = document.documentElement, problems = [];
if (page.scrollWidth > page.clientWidth)
  problems.push(`the page is ${page.scrollWidth} px wide`);
const scrolls = element => {
  for (let box = element; box !== document.body; box = box.parentElement)
    if (/auto|scroll/.test(window.getComputedStyle(box).overflowX)) return true;
  return false;
};
const lines = range => new Set([...range.getClientRects()].map(box => Math.round(box.top))).size;
for (const element of document.querySelectorAll("article *")) {
  const box = element.getBoundingClientRect();
  if (box.width && box.right > page.clientWidth + 1 && !scrolls(element))
    problems.push(`${element.tagName} ends at ${box.right} px: ${element.textContent}`);
}
const check = (element, parts) => {
  const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode;
    for (const match of text.data.matchAll(parts)) {
      const range = document.createRange();
      range.setStart(text, match.index);
      range.setEnd(text, match.index + match[0].length);
      if (lines(range) > 1) problems.push(`${element.tagName} breaks: ${match[0]}`);
    }
  }
};
for (const code of document.querySelectorAll("article :is(td, th) :not(pre) > code, td > code"))
  check(code, code.matches(".doc td > code") ? /\\S+/g : /.+/gs);
for (const heading of document.querySelectorAll("article :is(h1, h2, h3, h4)"))
  check(heading, /[^\\s-]+/g);
for (const picture of document.querySelectorAll("article img"))
  if (!picture.naturalWidth) problems.push(`no picture: ${picture.src}`);
return problems;
"""

# How bright the page is, and text and pictures on it: 0 is black and 1 white. A picture is read as
# the browser shows it, with the filter of its style.
BRIGHTNESS = """
const brightness = color => {
  const [r, g, b] = color.match(/[\\d.]+/g).map(Number);
  return (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255;
};
const canvas = document.createElement("canvas"), pictures = {}, texts = {};
const context = canvas.getContext("2d", {willReadFrequently: true});
for (const picture of document.querySelectorAll("article img")) {
  canvas.width = canvas.height = 64;
  context.filter = window.getComputedStyle(picture).filter;
  context.drawImage(picture, 0, 0, 64, 64);
  const [r, g, b, alpha] = context.getImageData(1, 1, 1, 1).data;
  if (alpha === 255) pictures[picture.src] = brightness(`${r} ${g} ${b}`);
}
for (const text of document.querySelectorAll("article figure.drawing text"))
  texts[text.textContent] = brightness(window.getComputedStyle(text).fill);
return {page: brightness(window.getComputedStyle(document.body).backgroundColor), pictures, texts};
"""


@pytest.fixture(scope="module")
def pages() -> list[str]:
    """The addresses of all pages, below the folder of the site."""
    if CHROMIUM is None:
        lack("chromium", "needs Chromium (apt-get install chromium)")
    if not SITE.is_dir():
        lack("chromium", "needs the documentation site (make docs)")
    return sorted(str(page.relative_to(SITE)) for page in SITE.rglob("*.html"))


@pytest.mark.once
@pytest.mark.parametrize("width", [360, 1400])
def test_nothing_overflows(pages: list[str], width: int, tmp_path: Path) -> None:
    problems = measure(SITE, pages, OVERFLOW, width=width, profile=tmp_path)
    assert len(problems) == len(pages) > 70
    assert {page: found for page, found in problems.items() if found} == {}


@pytest.mark.once
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pictures_have_the_colors_of_the_page(
    pages: list[str], scheme: Literal["light", "dark"], tmp_path: Path
) -> None:
    pages = [page for page in pages if PICTURE.search((SITE / page).read_text())]
    measured = measure(SITE, pages, BRIGHTNESS, width=1400, scheme=scheme, profile=tmp_path)
    light = scheme == "light"
    pictures: dict[str, Any] = {}
    texts: dict[str, Any] = {}
    for result in measured.values():
        assert (result["page"] > 0.5) == light
        pictures |= result["pictures"]
        texts |= result["texts"]
    assert len(pictures) > 5
    assert len(texts) > 50
    assert [picture for picture, value in pictures.items() if (value > 0.5) != light] == []
    assert [text for text, value in texts.items() if (value < 0.5) != light] == []


@pytest.mark.once
def test_overflow_is_found(pages: list[str], tmp_path: Path) -> None:
    """A wide box, a word that breaks in a cell and a picture that is not there are reported."""
    page = """<!doctype html><body style="margin: 0"><article>
      <div style="width: 900px">wide</div>
      <table><tr><td style="width: 1em; display: block"><code>two words</code></td></tr></table>
      <img src="none.png"></article>"""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "page.html").write_text(page)
    found = measure(
        tmp_path / "site", ["page.html"], OVERFLOW, width=360, profile=tmp_path / "profile"
    )["page.html"]
    assert [problem.split(":")[0] for problem in found] == [
        "the page is 900 px wide",
        "DIV ends at 900 px",
        "CODE breaks",
        "no picture",
    ]
