"""The command line: ``python -m pygsampler`` or ``pygsampler``."""

from __future__ import annotations

from pygsampler.cli.group import main

if __name__ == "__main__":
    main(prog_name="python -m pygsampler")
