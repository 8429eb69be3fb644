"""Counts of the memories and jobs that the engine holds in this process."""

from __future__ import annotations

import gc

import pygsampler as pgs


def held_now() -> tuple[int, int]:
    """Memories that the engine has given out, and jobs on their way."""
    stats = pgs.engine.memory_stats()
    return stats["live"], stats["jobs"]


def held() -> tuple[int, int]:
    """The same when nothing is left that a collection would free."""
    gc.collect()
    return held_now()
