"""Reads a file of edges in the engine, step by step, so that Ctrl-C ends it."""

from __future__ import annotations

import base64
import json
import logging
import os
from typing import Any, ClassVar

from pygsampler._engine import memory
from pygsampler._engine.handle import SLICE_MS, EngineHandle
from pygsampler._engine.progress import Progress, progress_callback


def run(
    source: str,
    target: str,
    plan: dict[str, Any],
    progress: Progress,
    words: dict[str, list[str]] | None = None,
) -> memory.Memory | int:
    """The graph's memory, 0 where it is in a file; an error or Ctrl-C leaves neither.

    ``words`` gets the names that the columns of names have, by the arrays.
    """
    asked = {**plan, "source": _encoded(source), "target": _encoded(target)}
    text = f"reading {os.path.basename(source)}"
    job = _ReadJob()
    try:
        with progress_callback(progress, text) as report:
            job._create("EdgesStart", json.dumps(asked))
            told = False
            while True:
                state: dict[str, Any] = json.loads(job._call("EdgesPoll", SLICE_MS))
                # The shape is known before large memory is allocated, so the warning comes first.
                if state["shape"]["nodes"] and not told:
                    told = True
                    warn_sparse_ids(source, plan, state["shape"]["nodes"], state["shape"]["edges"])
                if state["total"]:
                    report(state["done"], state["total"])
                if state["finished"]:
                    if words is not None:
                        words.update(state["words"])
                    return memory.call("EdgesTake", job._number)
    except OSError as error:
        raise OSError(error.errno, error.strerror, target or source) from None
    finally:
        job._release()


def _encoded(path: str) -> str:
    # Names of files need not be UTF-8.
    return base64.b64encode(os.fsencode(path)).decode()


class _ReadJob(EngineHandle):
    """A job of the engine's that reads edges."""

    __slots__ = ()

    _close_function: ClassVar[str] = "EdgesCancel"


# Below this memory is of no concern, and above it only where most nodes cannot have an edge.
_MANY_NODES = 10**6
_NODES_PER_EDGE = 20


def warn_sparse_ids(source: str, plan: dict[str, Any], num_nodes: int, num_edges: int) -> None:
    """Logs a warning if nearly all nodes exist only because of a single large id.

    It does not if the caller has decided on the numbering.
    """
    if plan["decided"] or num_nodes <= max(_MANY_NODES, _NODES_PER_EDGE * num_edges):
        return
    logging.getLogger("pygsampler").warning(
        "%s: %s nodes for %s edge%s; renumber=True numbers those that have edges",
        os.path.basename(source),
        f"{num_nodes:,}",
        f"{num_edges:,}",
        "" if num_edges == 1 else "s",
    )
