"""Tables as OGB's folders have them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np


def table(path: Path, rows: Any, header: str = "") -> None:
    """Writes a compressed CSV."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(",".join(map(str, row)) + "\n" for row in np.asarray(rows).tolist())
    path.write_bytes(gzip.compress((header + text).encode()))
