"""The papers' algorithms as texts of programs, and the graphs of their worked examples."""

from __future__ import annotations

from dataclasses import dataclass

from program_graphs import Arrays, with_arrays


def rows_of(*rows: list[int], weights: list[float] | None = None) -> Arrays:
    """A graph by the in-neighbours of its vertices, with the weights of its edges."""
    case = with_arrays(list(rows), 1 + max(map(max, filter(None, rows))), "none", 0)
    if weights is not None:
        case.edge_data["w"] = weights
    return case


# The undirected path 0-1, 0-2, 1-2, 2-3, 3-4 with self loops, its rows divided by their lengths.
T_ROWS = [[0, 1, 2], [0, 1, 2], [0, 1, 2, 3], [2, 3, 4], [3, 4]]
T = rows_of(*T_ROWS, weights=[1 / len(row) for row in T_ROWS for _ in row])
T.node_data["y"] = [0.0, 1.0, -1.0, 2.0, 0.0]

# Zou et al., NeurIPS 2019, by the code of its authors.
LADIES = """%0 = seeds
%1 = slice %0
%2 = const value=2
%3 = pow %1, %2
%4 = sum %3 axis=1
%5 = collective %1, %4 k=2 replace={} site=0
%6 = div %5, %4 axis=1
%7 = sum %6 axis=0
%8 = div %6, %7 axis=0
%9 = row %8
%10 = row %1
%11 = times %5
return blocks %8 "p"=%4 "candidates"=%10 "chosen"=%9 "times"=%11"""

# Balin and Catalyurek, NeurIPS 2023, without importance sampling.
LABOR = """%0 = seeds
%1 = slice %0
%2 = random site=0
%3 = const value={}
%4 = count %1 axis=0
%5 = div %3, %4
%6 = spread %1, %5 axis=0
%7 = le %2, %6 axis=1
%8 = filter %1, %7
%9 = spread %8, %5 axis=0
%10 = div %8, %9
return blocks %10"""

# Chen et al., ICLR 2018.
FASTGCN = """%0 = seeds
%1 = whole
%2 = const value=2
%3 = pow %1, %2
%4 = sum %3 axis=1
%5 = sum %4
%6 = div %4, %5
%7 = draw %6 k=3 replace=true site=0
%8 = unique %7
%9 = unique %0
%10 = cross %8, %9
%11 = div %10, %6 axis=1
return blocks %11 "q"=%6 "drawn"=%7"""

# Huang et al., NeurIPS 2018, with w = (1, 1) and features of one number.
ASGCN = """%0 = seeds
%1 = slice %0
%2 = mul %1, %1
%3 = sum %2 axis=1
%4 = sqrt %3
%5 = vertices name="y"
%6 = gather %5, %0
%7 = sum %6
%8 = add %5, %7
%9 = relu %8
%10 = const value=1
%11 = add %9, %10
%12 = const value=2
%13 = div %11, %12
%14 = mul %4, %13
%15 = relu %5
%16 = add %15, %10
%17 = mul %14, %16
%18 = sum %17
%19 = div %17, %18
%20 = collective %1, %19 k=2 replace=true site=0
%21 = times %20
%22 = mul %20, %21 axis=1
%23 = div %22, %19 axis=1
return blocks %23 "q"=%19"""

# Zeng et al., ICLR 2021: the subgraph of some hops.
SHADOW = """%0 = seeds
%1 = unique %0
%2 = slice %1
%3 = individual %2 k=3 replace=false site=0
%4 = row %3
%5 = union %1, %4
%6 = slice %5
%7 = individual %6 k=2 replace=false site=1
%8 = row %7
%9 = union %5, %8
%10 = cross %9, %9
%11 = degree
%12 = gather %11, %9
return subgraph %9, %10 "degree"=%12 "roots"=%1"""

# Vectors along a matrix's rows, read for rows chosen from it: a step later, two, and by a list.
INHERITED = """%0 = seeds
%1 = slice %0
%2 = sum %1 axis=1
%3 = individual %1 k=3 replace=false site=0
%4 = row %3
%5 = gather %2, %4
%6 = collective %3, %5 k=4 replace=true site=1
%7 = row %6
%8 = gather %2, %7
%9 = div %6, %8 axis=1
%10 = unique %0
%11 = cross %4, %10
%12 = individual %11 k=2 replace=false site=2
%13 = row %12
%14 = vertices name="y"
%15 = gather %14, %4
%16 = gather %15, %13
%17 = gather %5, %13
%18 = add %16, %17
return blocks %9, %12 "p"=%5 "q"=%8 "x"=%18"""

# Columns and rows of matrices that were sliced, drawn and computed, by lists with repeated vertices
# and with some that they do not have; values along what the edges came from; a predicate.
SLICES = """%0 = seeds
%1 = slice %0
%2 = individual %1 k=3 replace=true site=0
%3 = row %2
%4 = concat %3, %0
%5 = count %1 axis=0
%6 = div %2, %5 axis=0
%7 = extract %6, %4
%8 = row %7
%9 = isin %8, %0
%10 = spread %7, %9 axis=1
%11 = filter %7, %10
%12 = sum %11 axis=0
%13 = individual %7, %7 k=2 replace=false site=1
%14 = sum %1 axis=1
%15 = div %13, %14 axis=1
%16 = isin %4, %3
%17 = whole
%18 = mul %17, %17
%19 = extract %18, %0
%20 = column %17
%21 = isin %20, %4
%22 = spread %19, %21 axis=1
%23 = filter %19, %22
%24 = extract %11, %3
%25 = column %24
%26 = pick %4, %16
%27 = extract %15, %26
return blocks %27, %24, %23, %11 "in"=%16 "sums"=%12 "columns"=%25 "all"=%21"""

WEIGHTED = """%0 = seeds
%1 = slice %0
%2 = individual %1, %1 k=2 replace={} site=0
%3 = row %2
return blocks %2 "rows"=%3"""


def hops(fanouts: list[int], replace: bool) -> str:
    """PGSampler (Hamilton et al., NeurIPS 2017) as a program."""
    lines, s, made = ["%0 = seeds"], 0, list[str]()
    for site, fanout in enumerate(reversed(fanouts)):
        n = len(lines)
        lines += [
            f"%{n} = slice %{s}",
            f"%{n + 1} = individual %{n} k={fanout} replace={str(replace).lower()} site={site}",
            f"%{n + 2} = row %{n + 1}",
            f"%{n + 3} = union %{s}, %{n + 2}",
        ]
        made.insert(0, f"%{n + 1}")
        s = n + 3
    return "\n".join([*lines, "return blocks " + ", ".join(made)])


@dataclass
class Example:
    code: str
    weight: str | None = None


EXAMPLES = {
    "neighbours": Example(hops([3, 2], False)),
    "neighbours, replace": Example(hops([2, -1, 3], True), "w"),
    "weighted": Example(WEIGHTED.format("false"), "w"),
    "weighted, replace": Example(WEIGHTED.format("true"), "w"),
    "ladies": Example(LADIES.format("false"), "m"),
    "ladies, replace": Example(LADIES.format("true"), "k"),
    "labor": Example(LABOR.format(2)),
    "fastgcn": Example(FASTGCN),
    "asgcn": Example(ASGCN, "m"),
    "shadow": Example(SHADOW, "t"),
    "inherited": Example(INHERITED, "w"),
    "slices": Example(SLICES, "w"),
    "slices, without weights": Example(SLICES),
}
