"""``Directed``: samplers for DGL that follow edges against their direction, or along it."""

from __future__ import annotations

from typing import Any

from dgl import DGLGraph


class Directed:
    """What ``edge_dir`` is to a sampler."""

    _edge_dir: str

    @property
    def edge_dir(self) -> str:
        """``'in'`` or ``'out'``."""
        return self._edge_dir

    @edge_dir.setter
    def edge_dir(self, edge_dir: str) -> None:
        if edge_dir not in ("in", "out"):
            raise ValueError(f"edge_dir: expected 'in' or 'out', got {edge_dir!r}")
        self._edge_dir = edge_dir

    def _turns(self, g: Any) -> bool:
        """Whether it samples ``g`` turned round."""
        return self._edge_dir == "out" and isinstance(g, DGLGraph) and not g.is_block
