"""Whether tensors of vertex ids are vertices of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def check_vertices(ids: torch.Tensor, where: str, num_nodes: int) -> None:
    """IndexError that names the first of ``ids``, shape [n], which is not in ``[0, num_nodes)``."""
    if not ids.numel():
        return
    low, high = ids.aminmax()
    if int(low) < 0 or int(high) >= num_nodes:
        at = int(((ids < 0) | (ids >= num_nodes)).nonzero()[0])
        raise IndexError(
            f"{where}[{at}]: expected a vertex in [0, {num_nodes}), got {int(ids[at])}"
        )
