"""Functions under ``contextlib.contextmanager`` raise no other error than their block.

On Python 3.12 and newer the two errors would refer to each other, and the frames of the block with
all their objects would stay until a garbage collection: the server of samples ran out of slots.
``pygsampler._engine.error_conversion.ErrorConversion`` has no such cycle.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

import pytest

from tests.style.findings import ROOT, Finding, check, modules, place

pytestmark = pytest.mark.once

CONVERTING = ("ErrorConversion", "suppress")


def test_context_managers_raise_the_error_of_their_block() -> None:
    check(
        Finding(f"{name} another-error", place(ROOT, module.path, line))
        for module in modules(ROOT).values()
        for name, line in other_errors(module.tree)
    )


def other_errors(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yields names and lines of context managers that convert or suppress errors of a block."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and any(
            ast.unparse(each).endswith("contextmanager") for each in function.decorator_list
        ):
            for node in ast.walk(function):
                converts = (
                    isinstance(node, ast.Try) and not all(map(_reraises, node.handlers))
                ) or (isinstance(node, ast.With) and any(map(_converts, node.items)))
                if converts and _yields(node.body):
                    yield function.name, node.lineno


def _reraises(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def _converts(item: ast.withitem) -> bool:
    call = item.context_expr
    return isinstance(call, ast.Call) and ast.unparse(call.func) in CONVERTING


def _yields(body: Iterable[ast.stmt]) -> bool:
    return any(isinstance(node, ast.Yield) for each in body for node in ast.walk(each))


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("try:\n  yield\n except ValueError as error:\n  raise KeyError from error", True),
        ("try:\n  yield\n except ValueError:\n  pass", True),
        ("with suppress(ValueError):\n  yield", True),
        ("with ErrorConversion(convert), other():\n  yield", True),
        ("try:\n  yield\n except ValueError:\n  close()\n  raise", False),
        ("try:\n  x = 1\n except ValueError:\n  pass\n yield", False),
        ("with other():\n  yield", False),
    ],
)
def test_other_errors_of_context_managers_are_found(body: str, found: bool) -> None:
    tree = ast.parse(f"@contextmanager\ndef f():\n {body}")
    assert [*other_errors(tree)] == ([("f", 3)] if found else [])
