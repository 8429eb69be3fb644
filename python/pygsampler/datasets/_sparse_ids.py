"""What is said of a graph that is made of gaps between ids, and takes memory for each of them."""

from __future__ import annotations

import logging
import os
from typing import Any

# Below this memory is of no concern, and above it only where most vertices cannot have an edge.
_MANY_NODES = 10**6
_NODES_PER_EDGE = 20


def warn_sparse_ids(source: str, plan: dict[str, Any], num_nodes: int, num_edges: int) -> None:
    """A warning in the log where a single large id has made nearly all of the vertices.

    Not where the caller has decided on the numbering.
    """
    if plan["decided"] or num_nodes <= max(_MANY_NODES, _NODES_PER_EDGE * num_edges):
        return
    logging.getLogger("pygsampler").warning(
        "%s: %s vertices for %s edge%s; renumber=True numbers those that have edges",
        os.path.basename(source),
        f"{num_nodes:,}",
        f"{num_edges:,}",
        "" if num_edges == 1 else "s",
    )
