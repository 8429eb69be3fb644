"""Hooks of mkdocs for files of the repository that are not in docs/.

Pages link to other files by their place in the repository, so that the links work where the pages
are read as files too. On the site a link to the change log or the contributors' page leads to that
page, a picture is taken along, a drawing becomes a part of the page (so that it has the page's
colours), and every other link leads to the repository.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
# Pages of the site that lie at the top of the repository.
PAGES = ("CHANGELOG.md", "CONTRIBUTING.md")
PICTURES = "pictures"
LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    from mkdocs.structure.files import File

    for name in PAGES:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    for picture in sorted((ROOT / "benchmarks" / "results").rglob("*.png")):
        name = f"{PICTURES}/{picture.name}"
        files.append(File.generated(config, name, abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    place = page.file.src_uri

    def link(found: re.Match[str]) -> str:
        return _link(found, place, config.extra["repository"])

    # Every second part is a fence. Its words for the tests, after the language, are not Markdown.
    parts = FENCE.split(markdown)
    parts[::2] = [LINK.sub(link, part) for part in parts[::2]]
    parts[1::2] = [re.sub(r"\A```(\w+) .*", r"```\1", part) for part in parts[1::2]]
    return "".join(parts)


def _link(found: re.Match[str], place: str, repository: str) -> str:
    target, _, anchor = found["target"].partition("#")
    if not target or "://" in target or target.startswith("mailto:"):
        return found[0]
    here = "" if place in PAGES else "docs"
    path = posixpath.normpath(posixpath.join(here, posixpath.dirname(place), target))
    if found["image"] and path.endswith(".svg"):
        return _drawing(found["text"], (ROOT / path).read_text())
    if path in PAGES:
        there = path
    elif path.startswith("docs/"):
        there = path.removeprefix("docs/")
    elif found["image"]:
        there = f"{PICTURES}/{posixpath.basename(path)}"
    else:
        there = ""
    if there:
        address = posixpath.relpath(there, posixpath.dirname(place) or ".")
    else:
        address = f"{repository}/blob/main/{path}"
    hash_and_anchor = f"#{anchor}" if anchor else ""
    return f"{found['image']}[{found['text']}]({address}{hash_and_anchor})"


def _drawing(text: str, svg: str) -> str:
    """The drawing in the page. In one line: an empty one would end the block of HTML."""
    inner = " ".join(line.strip() for line in svg.splitlines() if line.strip())
    label: Any = text.replace('"', "&quot;")
    return f'<figure class="drawing" role="img" aria-label="{label}">{inner}</figure>'
