"""The module under which a class or function is public, as its ``__module__``."""

from __future__ import annotations

from types import FunctionType
from typing import Any


def set_public_module(namespace: dict[str, Any]) -> None:
    """Makes a public module the home of what it exports, for ``repr``, pickles and help.

    Classes and functions of its ``__all__`` that are defined in a private module or in a submodule
    get its name as ``__module__``. Names that another public module owns are left alone: importing
    an adapter must not move a class of the root.

    Parameters
    ----------
    namespace : dict
        ``globals()`` of the public module, at its end.
    """
    home = namespace["__name__"]
    for name in namespace["__all__"]:
        value = namespace.get(name)
        if not isinstance(value, (type, FunctionType)):
            continue
        defined_in = value.__module__
        if "._" in defined_in or defined_in.startswith(f"{home}."):
            value.__module__ = home
