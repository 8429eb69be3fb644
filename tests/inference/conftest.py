"""What the tests of ``inference`` share."""

from __future__ import annotations

import sys
from pathlib import Path

# Makes inference_cases importable: pytest's importlib mode leaves sys.path alone.
sys.path.append(str(Path(__file__).parent))
