"""A message about missing packages that only the command line needs."""

from __future__ import annotations

import sys
from typing import NoReturn


def main(prog_name: str = "pygsampler") -> NoReturn:
    """Ends with 2, as for any other mistake on the command line."""
    message = f"Error: {prog_name} needs click and rich: pip install click rich"
    print(message, file=sys.stderr)
    raise SystemExit(2)
