"""``segment_reduce``: reductions over the segments of any CSR."""

from __future__ import annotations

import torch

from pygsampler._batch import segments

__all__ = ["segment_reduce"]


def segment_reduce(
    x: torch.Tensor, indptr: torch.Tensor, indices: torch.Tensor, reduce: str = "sum"
) -> torch.Tensor:
    """Rows of ``x`` that ``indices`` name, reduced over segments, with gradients.

    What the methods ``sum``, ``mean`` and ``max`` of a block do, for any CSR: words of documents,
    edges of another graph.

    Parameters
    ----------
    x : float tensor of shape [N, ...]
    indptr : int32 or int64, shape [R + 1]
        Segment i is ``indices[indptr[i]:indptr[i + 1]]``; from 0 to at most E, and it does not
        fall. What is behind the last one is not looked at.
    indices : the dtype of indptr, shape [E]
        Rows in [0, N).
    reduce : str
        ``"sum"``, ``"mean"`` or ``"max"``.

    Returns
    -------
    torch.Tensor
        Of shape [R, ...] and x's dtype; 0 for empty segments.

    Raises
    ------
    TypeError, ValueError, IndexError
        For arguments of another dtype, shape, device or value; on a GPU values are not looked at.
    """
    kinds = {"sum": segments.SUM, "mean": segments.MEAN, "max": segments.MAX}
    if reduce not in kinds:
        raise ValueError(f"reduce: expected 'sum', 'mean' or 'max', got {reduce!r}")
    for name, ids in (("indptr", indptr), ("indices", indices)):
        if ids.dtype not in (torch.int32, torch.int64) or ids.dtype != indptr.dtype:
            raise TypeError(f"{name}: expected int32 or int64 as indptr, got {ids.dtype}")
        if ids.dim() != 1 or ids.device != x.device:
            raise ValueError(
                f"{name}: expected one dimension on {x.device}, got shape {tuple(ids.shape)} on "
                f"{ids.device}"
            )
    if not len(indptr):
        raise ValueError("indptr: expected at least one value (0), got none")
    csr = segments.Segments(indptr.contiguous(), indices.contiguous(), len(x))
    return segments.reduce(csr, x, kinds[reduce])
