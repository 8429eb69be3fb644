"""Classes as programs, in the style of NextDoor or of GNNSampler.

A class becomes the function that a user would have written, so both result in the same plan.

- In NextDoor's style (Jangda et al., EuroSys 2021) a class has ``steps`` and ``sampling_type``
  (``"individual"`` or ``"collective"``), attributes or methods without arguments;
  ``sample_size(step)``, the number of edges of each transit, or of rows for all transits, that are
  drawn; ``next(A, transits, C, step)``, which returns the weights of the draws from
  ``C = A[:, transits]``: a matrix of its edges, a vector along its rows, or None for equal chances.
  It may have ``unique(step)``, True if a step's edges or rows are distinct (False), and
  ``step_transits(A, sampled, transits, step)``, the next step's transits (``sampled.row()``). Its
  samplers take ``output``: ``"blocks"``, or ``"steps"`` for ``batch.extra["step_0"]`` and so on,
  the distinct nodes that each step met.
- In GNNSampler's style (Liu et al., 2021) a class has ``init(A, seeds)``, which returns a state of
  any kind; ``hops``; ``execute(A, state, hop)``, which returns a matrix, or a dictionary of
  matrices of the same edges, or None, and the next state. It may have
  ``result(A, state, blocks)``, which returns what a function would, instead of blocks.
- In GNNSampler's named steps (its section 3, Algorithms 1 to 3) a class has the methods of a
  listing, each with those of the listing's names that it needs as arguments: ``layers``,
  ``get_sample_num``, ``get_neighbor`` or ``get_prob_distribution``, and ``sample_node`` for blocks;
  ``subgraph_size`` and ``sample_node`` for a subgraph. docs/algorithms/programs.md has all steps.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from pygsampler._engine.checks import describe
from pygsampler.programs._language.expressions import Matrix, NodeList, Vector
from pygsampler.programs._language.graph_matrix import GraphMatrix
from pygsampler.research.class_checks import (
    attribute,
    check_methods,
    count,
    integer,
    refuse,
)
from pygsampler.research.gnnsampler_steps import check_steps, has_steps, run_steps

__all__ = ["function_of_class"]

# The arguments of methods besides the object.
_NEXTDOOR = {
    "next": ("A", "transits", "C", "step"),
    "sample_size": ("step",),
    "unique": ("step",),
    "step_transits": ("A", "sampled", "transits", "step"),
}
_GNNSAMPLER = {
    "init": ("A", "seeds"),
    "execute": ("A", "state", "hop"),
    "result": ("A", "state", "blocks"),
}
# Names of NextDoor's C++, and ours.
_THEIRS = {
    "sampleSize": "sample_size",
    "samplingType": "sampling_type",
    "stepTransits": "step_transits",
}
_TYPES = ("individual", "collective")
_OUTPUTS = ("blocks", "steps")


def function_of_class(form: type) -> Callable[..., Any]:
    """Returns the function of a class in either style, with A, seeds and the class's arguments.

    Raises
    ------
    TypeError
        For a class in neither style, and for methods that are missing or have other arguments; with
        the line of the class or method.
    """
    given = list(inspect.signature(form).parameters.values())
    named = [
        p.replace(kind=p.KEYWORD_ONLY) if p.kind == p.POSITIONAL_OR_KEYWORD else p for p in given
    ]
    if hasattr(form, "next"):
        for theirs, ours in _THEIRS.items():
            if hasattr(form, theirs) and not hasattr(form, ours):
                refuse(
                    form,
                    theirs,
                    f"expected it to be called {ours}; classes with the paper's own interface, "
                    "with a sample for each root, are pygsampler.research.nextdoor.NextDoor's",
                )
        check_methods(form, _NEXTDOOR, ("sample_size",))
        if "output" in inspect.signature(form).parameters:
            refuse(form, None, "output: expected another name, since samplers of this kind have it")
        named.append(
            inspect.Parameter("output", inspect.Parameter.KEYWORD_ONLY, default=_OUTPUTS[0])
        )
        run = _nextdoor
    elif hasattr(form, "execute") or hasattr(form, "init"):
        check_methods(form, _GNNSAMPLER, ("init", "execute"))
        run = _gnnsampler
    elif has_steps(form):
        check_steps(form)
        run = run_steps
    else:
        refuse(
            form,
            None,
            "expected a method next (as in NextDoor), or init and execute or the named steps "
            "of GNNSampler's, got neither",
        )

    def function(A: GraphMatrix, seeds: NodeList, **constants: Any) -> Any:
        return run(form, A, seeds, constants)

    for name in ("__name__", "__qualname__", "__doc__", "__module__"):
        setattr(function, name, getattr(form, name))
    both = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_ONLY) for n in ("A", "seeds")]
    function.__signature__ = inspect.Signature([*both, *named])  # type: ignore[attr-defined]
    return function


def _nextdoor(form: type, A: GraphMatrix, seeds: NodeList, constants: dict[str, Any]) -> Any:
    output = constants.pop("output", _OUTPUTS[0])
    if output not in _OUTPUTS:
        raise ValueError(f"output: expected 'blocks' or 'steps', got {output!r}")
    app = form(**constants)
    kind = attribute(form, app, "sampling_type")
    if kind not in _TYPES:
        refuse(form, "sampling_type", f"expected 'individual' or 'collective', got {kind!r}")
    blocks: list[Matrix] = []
    met: dict[str, NodeList] = {}
    transits = seeds
    for step in range(count(form, app, "steps")):
        C = A[:, transits]
        chances = app.next(A, transits, C, step)
        K = integer(form, "sample_size", app.sample_size(step), -1)
        unique = app.unique(step) if hasattr(app, "unique") else False
        if not isinstance(unique, bool):
            refuse(form, "unique", f"expected True or False, got {describe(unique)}")
        wanted: type = Matrix if kind == "individual" else Vector
        if chances is not None and not isinstance(chances, wanted):
            what = "a matrix of C's edges" if wanted is Matrix else "a vector along C's rows"
            got = f"{describe(chances)}, and sampling_type is {kind!r}"
            refuse(form, "next", f"expected {what}, or None for equal chances, got {got}")
        by: Any = chances
        draw = C.individual_sample if kind == "individual" else C.collective_sample
        sampled = draw(K, by, replace=not unique)
        blocks.insert(0, sampled)
        own = hasattr(app, "step_transits")
        if output == "steps" or not own:
            met[f"step_{step}"] = sampled.row()
        if own:
            transits = app.step_transits(A, sampled, transits, step)
            if not isinstance(transits, NodeList):
                got = describe(transits)
                refuse(form, "step_transits", f"expected a list of nodes, got {got}")
        else:
            transits = met[f"step_{step}"]
    return met if output == "steps" else blocks


def _gnnsampler(form: type, A: GraphMatrix, seeds: NodeList, constants: dict[str, Any]) -> Any:
    app = form(**constants)
    state = app.init(A, seeds)
    blocks: list[Any] = []
    for hop in range(count(form, app, "hops")):
        made = app.execute(A, state, hop)
        if not (isinstance(made, tuple) and len(made) == 2):
            got = describe(made)
            refuse(form, "execute", f"expected a matrix (or None) and the state, got {got}")
        block, state = made
        if block is not None and not isinstance(block, (Mapping, Matrix)):
            got = describe(block)
            refuse(form, "execute", f"expected a matrix, values by name or None, got {got}")
        if block is not None:
            blocks.insert(0, block)
    return app.result(A, state, blocks) if hasattr(app, "result") else blocks
