"""Checks of the classes that programs are written as, with the line of a class or method."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, NoReturn

from pygsampler._engine.checks import describe, index

__all__ = ["attribute", "check_methods", "count", "integer", "refuse"]


def check_methods(
    form: type, expected: dict[str, tuple[str, ...]], required: tuple[str, ...]
) -> None:
    """Raises a TypeError unless the methods are there and take the arguments of ``expected``."""
    for name, takes in expected.items():
        method = getattr(form, name, None)
        asked = f"expected a method {name}({', '.join(['self', *takes])})"
        if method is None:
            if name in required:
                refuse(form, None, f"{asked}, got none")
            continue
        if not callable(method):
            refuse(form, None, f"{name}: {asked}, got {describe(method)}")
        bound = inspect.getattr_static(form, name)
        signature = inspect.signature(method)
        own = () if isinstance(bound, (staticmethod, classmethod)) else (None,)
        try:
            signature.bind(*own, *takes)
        except TypeError:
            refuse(form, name, f"{asked}, got {name}{signature}")


def attribute(form: type, app: Any, name: str) -> Any:
    """An attribute, or what a method of that name returns."""
    if not hasattr(app, name):
        refuse(form, None, f"expected {name}, an attribute or a method, got none")
    value = getattr(app, name)
    return value() if callable(value) else value


def count(form: type, app: Any, name: str) -> int:
    return integer(form, name, attribute(form, app, name), 1)


def integer(form: type, name: str, value: Any, least: int) -> int:
    asked = f"expected an integer >= {least}"
    if isinstance(value, bool):
        refuse(form, name, f"{asked}, got {value}")
    try:
        number = index(value)
    except TypeError:
        refuse(form, name, f"{asked}, got {describe(value)}")
    if number < least:
        refuse(form, name, f"{asked}, got {number}")
    return number


def refuse(form: type, method: str | None, what: str) -> NoReturn:
    """An error of a class or of one of its methods, with the line of it where there is one."""
    code = getattr(getattr(form, method, None), "__code__", None) if method else None
    where = ""
    if code is not None:
        where = f", {Path(code.co_filename).name}:{code.co_firstlineno}"
    else:
        try:
            line = inspect.getsourcelines(form)[1]
            where = f", {Path(inspect.getsourcefile(form) or '').name}:{line}"
        except (OSError, TypeError):
            # A class that was typed in has no source.
            pass
    raise TypeError(f"program {form.__name__}{where}: {method + ': ' if method else ''}{what}")
