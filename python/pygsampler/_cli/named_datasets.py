"""Data sets that ``convert`` knows by name: the one of the package, and OGB's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pygsampler._cli.options import is_built_in

if TYPE_CHECKING:
    from pygsampler._cli.progress import Progress


def is_dataset_name(name: str) -> bool:
    """True if ``name`` is that of a data set, and of no file."""
    return is_built_in(name) or (name.startswith(("ogbn-", "ogbl-")) and not Path(name).exists())


def save(
    name: str, root: Path, target: Path, progress: Progress, quantize: str | None = None
) -> None:
    """Writes the graph of a data set with what training needs: labels, features, the split.

    ``quantize`` is the kind of values that features are stored as.
    """
    if is_built_in(name):
        if quantize is not None:
            raise click.UsageError(f"--quantize: expected a data set with features, got {name}")
        _save_debian(target, progress)
        return
    from pygsampler import Features
    from pygsampler.datasets import ogb

    data = ogb(name, root=root)
    names = ("features", "edge_features", "labels", "train", "val", "test")
    arrays = {key: getattr(data, key) for key in names if getattr(data, key) is not None}
    if quantize is not None:
        if "features" not in arrays:
            raise click.UsageError(f"--quantize: expected a data set with features, got {name}")
        features = Features.from_tensor(arrays["features"])
        arrays["features"] = features._quantize_in_file(quantize, target.parent, True)
    data.graph.save(target, arrays=arrays, progress=progress)


def _save_debian(target: Path, progress: Progress) -> None:
    """Saves the graph of Debian with the packages' names and words."""
    import numpy as np

    from pygsampler.datasets import debian

    data = debian()
    names = [name.encode() for name in data.names]
    arrays: dict[str, Any] = {
        name: getattr(data, name)
        for name in ("labels", "train", "val", "test", "word_indptr", "word_indices")
    }
    arrays["node_names.offsets"] = np.cumsum([0, *map(len, names)], dtype=np.int64)
    arrays["node_names.bytes"] = np.frombuffer(b"".join(names), np.uint8)
    data.graph().save(target, arrays=arrays, progress=progress)
