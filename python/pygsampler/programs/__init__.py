"""Samplers that are written as functions over the graph as a matrix, and their values."""

from __future__ import annotations

from pygsampler._engine.public_home import set_public_module
from pygsampler.programs._language.expressions import (
    DenseRows,
    Input,
    Matrix,
    NodeList,
    Scalar,
    Vector,
)
from pygsampler.programs._language.graph_matrix import GraphMatrix
from pygsampler.programs._language.reports import Explanation, Profile
from pygsampler.programs._language.stack import Stack, stack
from pygsampler.programs.hetero_program import HeteroProgram
from pygsampler.programs.program import Program, ProgramFunction, program
from pygsampler.programs.walk_program import WalkProgram

__all__ = [
    "DenseRows",
    "Explanation",
    "GraphMatrix",
    "HeteroProgram",
    "Input",
    "Matrix",
    "NodeList",
    "Profile",
    "Program",
    "ProgramFunction",
    "Scalar",
    "Stack",
    "Vector",
    "WalkProgram",
    "program",
    "stack",
]

set_public_module(globals())


def __dir__() -> list[str]:
    return sorted(__all__)
