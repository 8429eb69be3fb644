"""Compares results with their digests, where pytest is not installed.

    python tests/golden --check                  # on the CPU
    python tests/golden --check --device cuda    # on a GPU: the same digests
    python tests/golden --write                  # adds the digests of new cases

NumPy is enough. Cases that need torch, DGL or PyG are not run where these are missing, and counted.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from types import ModuleType


def package() -> ModuleType:
    """Imports the modules here as a package, wherever a package ``tests`` may be installed."""
    golden = ModuleType("golden")
    golden.__path__ = [str(Path(__file__).resolve().parent)]
    sys.modules["golden"] = golden
    return importlib.import_module("golden.digests")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="tests/golden",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", action="store_true", help="fails if a result is another")
    what.add_argument("--write", action="store_true", help="changes no digest")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:1")
    parser.add_argument(
        "--emulated", action="store_true", help="fewer cases, for the GPU of tests/emulator"
    )
    arguments = parser.parse_args()
    if arguments.emulated:
        # Torch does not take the emulator for a GPU.
        sys.modules["torch"] = None  # type: ignore[assignment]
    digests = package()
    print(
        digests.write() if arguments.write else digests.check(arguments.device, arguments.emulated)
    )


if __name__ == "__main__":
    main()
