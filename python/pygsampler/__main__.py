"""The command line: ``python -m pygsampler`` or ``pygsampler``."""

from __future__ import annotations

from importlib.util import find_spec

if all(map(find_spec, ("click", "rich"))):
    from pygsampler._cli.group import main
else:
    from pygsampler._cli.missing_packages import main  # type: ignore[assignment]

if __name__ == "__main__":
    main(prog_name="python -m pygsampler")
