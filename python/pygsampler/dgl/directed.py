"""``Directed``: samplers for DGL that follow edges against their direction, or along it."""

from __future__ import annotations

from typing import Any

from dgl import DGLGraph

from pygsampler.dgl.optioned import Option

__all__ = ["Directed", "check_direction"]


class Directed:
    """The option ``edge_dir`` of a sampler."""

    edge_dir = Option("``'in'`` or ``'out'``.")

    def _turns(self, g: Any) -> bool:
        """Whether it samples ``g`` turned round."""
        return self.edge_dir == "out" and isinstance(g, DGLGraph) and not g.is_block


def check_direction(edge_dir: Any) -> None:
    """ValueError for what is no direction of edges."""
    if edge_dir not in ("in", "out"):
        raise ValueError(f"edge_dir: expected 'in' or 'out', got {edge_dir!r}")
