"""Renders the pages of the documentation site in a browser and measures them.

A page of its own, served beside the site, opens each page in a frame of a given width, runs a
script in it and sends what the scripts returned. Chromium needs neither a driver nor a display.
"""

from __future__ import annotations

import functools
import json
import queue
import shutil
import subprocess
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Literal

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
# The palette that Material for MkDocs keeps for a reader who has chosen one.
SCHEMES = {"light": "default", "dark": "slate"}

HARNESS = """<!doctype html><meta charset="utf-8"><body style="margin: 0"><script>
const measure = (document, window) => {%(script)s};
const load = (frame, page) => new Promise((resolve, reject) => {
  const late = setTimeout(() => reject(page + ": not loaded after 30 s"), 30000);
  frame.onload = () => { clearTimeout(late); resolve(); };
  frame.src = page;
});
const pages = %(pages)s, results = {};
const work = async () => {
  const frame = document.createElement("iframe");
  frame.style = "border: 0; width: %(width)dpx; height: 900px";
  document.body.append(frame);
  for (let page; page = pages.pop(); ) {
    await load(frame, page);
    const inner = frame.contentDocument;
    inner.body.setAttribute("data-md-color-scheme", "%(scheme)s");
    for (const picture of inner.images) picture.loading = "eager";
    await Promise.all([...inner.images].map(picture => picture.decode().catch(() => {})));
    await inner.fonts.ready;
    results[page] = measure(inner, frame.contentWindow);
  }
};
Promise.all([work(), work(), work()])
  .then(() => ({results}), error => ({error: String(error)}))
  .then(answer => fetch("/results", {method: "POST", body: JSON.stringify(answer)}));
</script>"""


class _Handler(SimpleHTTPRequestHandler):
    """Serves the site, the page that measures, and takes its results."""

    def __init__(self, *args: Any, harness: str, results: queue.Queue[Any], **options: Any) -> None:
        self.harness, self.results = harness, results
        super().__init__(*args, **options)

    def do_GET(self) -> None:
        if self.path != "/measure.html":
            super().do_GET()
            return
        body = self.harness.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.results.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


def measure(
    site: Path,
    pages: list[str],
    script: str,
    *,
    width: int,
    scheme: Literal["light", "dark"] = "light",
    profile: Path,
    timeout: float = 300,
) -> dict[str, Any]:
    """Returns what `script` returns for each of the `pages`, which are addresses below `site`.

    `script` is the body of a JavaScript function of `document` and `window`; its result is anything
    that JSON holds. `width` is in CSS pixels; `profile` is an empty folder for the browser.
    """
    assert CHROMIUM is not None
    harness = HARNESS % {
        "script": script,
        "width": width,
        "pages": json.dumps([f"/{page}" for page in pages]),
        "scheme": SCHEMES[scheme],
    }
    results: queue.Queue[Any] = queue.Queue()
    handler = functools.partial(_Handler, directory=str(site), harness=harness, results=results)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        browser = subprocess.Popen(
            [
                CHROMIUM,
                *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"),
                *("--no-first-run", "--disable-background-networking", "--disable-sync"),
                *("--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars"),
                f"--user-data-dir={profile}",
                f"--window-size={max(width, 500)},900",
                f"http://127.0.0.1:{server.server_port}/measure.html",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            answer = results.get(timeout=timeout)
        finally:
            browser.kill()
            browser.wait()
            server.shutdown()
    if "error" in answer:
        raise RuntimeError(answer["error"])
    measured: dict[str, Any] = answer["results"]
    return {page.removeprefix("/"): result for page, result in measured.items()}
