"""The numbers of programs: maps, sums and draws, to the bit, as the page on operators has them."""

from __future__ import annotations

import ctypes
import math
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from reference import integers, log, row_state, splitmix64

MASK64 = (1 << 64) - 1
GAMMA = 0x9E3779B97F4A7C15
ROW, WALK, CANDIDATE, INDEX, EDGE = 0, 2, 3, 4, 5  # the purposes of the draws


class BatchError(ValueError):
    """An error of the batch: values that an operator does not take."""


def single(x: float) -> float:
    """The nearest number of 32 bits."""
    return ctypes.c_float(x).value


def full_log(x: float) -> float:
    if x == 0:
        return -math.inf
    if x == math.inf:
        return x
    return log(x) if x > 0 else math.nan


def exp(x: float) -> float:
    if x != x:
        return x
    if x > 709.78:
        return math.inf
    if x < -745.14:
        return 0.0
    n = math.floor(x * float.fromhex("0x1.71547652b82fep+0") + 0.5)
    high, low = float.fromhex("0x1.62e42fefa3p-1"), float.fromhex("0x1.3de6af278ece6p-42")
    r, p = (x - n * high) - n * low, 1.0
    for k in range(14, 0, -1):
        p = 1 + (r * (1 / k)) * p
    half = int(n / 2)  # toward zero
    return p * 2.0 ** (n - half) * 2.0**half


MIDDLE = (
    (
        2.5090809287301226727e3,
        3.3430575583588128105e4,
        6.7265770927008700853e4,
        4.5921953931549871457e4,
        1.3731693765509461125e4,
        1.9715909503065514427e3,
        1.3314166789178437745e2,
        3.3871328727963666080,
    ),
    (
        5.2264952788528545610e3,
        2.8729085735721942674e4,
        3.9307895800092710610e4,
        2.1213794301586595867e4,
        5.3941960214247511077e3,
        6.8718700749205790830e2,
        4.2313330701600911252e1,
        1.0,
    ),
)
TAIL = (
    (
        7.74545014278341407640e-4,
        2.27238449892691845833e-2,
        2.41780725177450611770e-1,
        1.27045825245236838258,
        3.64784832476320460504,
        5.76949722146069140550,
        4.63033784615654529590,
        1.42343711074968357734,
    ),
    (
        1.05075007164441684324e-9,
        5.47593808499534494600e-4,
        1.51986665636164571966e-2,
        1.48103976427480074590e-1,
        6.89767334985100004550e-1,
        1.67638483018380384940,
        2.05319162663775882187,
        1.0,
    ),
)
FAR = (
    (
        2.01033439929228813265e-7,
        2.71155556874348757815e-5,
        1.24266094738807843860e-3,
        2.65321895265761230930e-2,
        2.96560571828504891230e-1,
        1.78482653991729133580,
        5.46378491116411436990,
        6.65790464350110377720,
    ),
    (
        2.04426310338993978564e-15,
        1.42151175831644588870e-7,
        1.84631831751005468180e-5,
        7.86869131145613259100e-4,
        1.48753612908506148525e-2,
        1.36929880922735805310e-1,
        5.99832206555887937690e-1,
        1.0,
    ),
)
BELOW = (
    (
        3.52624965998911e-2, 0.700383064443688, 6.37396220353165, 33.912866078383,
        112.079291497871, 221.213596169931, 220.206867912376,
    ),
    (
        8.83883476483184e-2, 1.75566716318264, 16.064177579207, 86.7807322029461,
        296.564248779674, 637.333633378831, 793.826512519948, 440.413735824752,
    ),
)  # fmt: skip


def polynomial(of: Sequence[float], x: float) -> float:
    y = of[0]
    for c in of[1:]:
        y = y * x + c
    return y


def normal_quantile(p: float) -> float:
    q = p - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        return q * polynomial(MIDDLE[0], r) / polynomial(MIDDLE[1], r)
    r = math.sqrt(-log(min(p, 1 - p)))
    (over, under), r = (TAIL, r - 1.6) if r <= 5 else (FAR, r - 5)
    return math.copysign(polynomial(over, r) / polynomial(under, r), q)


def normal_below(x: float) -> float:
    z = abs(x)
    below = exp(-z * z / 2)
    if z < 3:
        below = below * polynomial(BELOW[0], z) / polynomial(BELOW[1], z)
    else:
        fraction = z
        for k in range(32, 0, -1):
            fraction = z + k / fraction
        below = below / fraction / 2.5066282746310002
    return 1 - below if x > 0 else below


def quarter(j: int, k: int) -> tuple[float, float]:
    """Cosine and sine of a part of a right angle."""
    turned = 2 * j > k
    x = (k - j if turned else j) / k * (math.pi / 2)
    z, cos, sin = x * x, 1.0, 1.0
    for n in range(18, 0, -2):
        cos = 1 - z / (n * (n - 1)) * cos
        sin = 1 - z / (n * (n + 1)) * sin
    sin *= x
    return (sin, cos) if turned else (cos, sin)


def gradual(u: float, v: float, j: int, k: int) -> float:
    """The number of batch j of k, on its way from u to v."""
    if not j:
        return u
    cos, sin = quarter(j, k)
    return normal_below(cos * normal_quantile(u) + sin * normal_quantile(v))


def sqrt(x: float) -> float:
    return math.sqrt(x) if x >= 0 else math.nan


def divided(x: float, y: float) -> float:
    if y:
        return x / y
    if x == 0 or x != x:
        return math.nan
    return math.copysign(math.inf, x) * math.copysign(1, y)


def power(x: float, y: float) -> float:
    if abs(y) <= 64 and y == math.floor(y):
        r, b, digits = 1.0, x, int(abs(y))
        while digits:
            if digits & 1:
                r *= b
            digits >>= 1
            if digits:
                b *= b
        return divided(1.0, r) if y < 0 else r
    return sqrt(x) if y == 0.5 else exp(y * full_log(x))


MAPS: dict[str, Callable[..., float]] = {
    "neg": lambda x: -x,
    "abs": lambda x: abs(x),
    "sqrt": sqrt,
    "exp": exp,
    "log": full_log,
    "relu": lambda x: x if x > 0 else 0.0,
    "not": lambda x: float(x == 0),
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": divided,
    "pow": power,
    "min": lambda x, y: y if y < x else x,
    "max": lambda x, y: y if y > x else x,
    "lt": lambda x, y: float(x < y),
    "le": lambda x, y: float(x <= y),
    "eq": lambda x, y: float(x == y),
    "ne": lambda x, y: float(x != y),
    "where": lambda c, a, b: b if c == 0 else a,
}


# Dense rows


def projected(row: list[float], w: list[list[float]]) -> list[float]:
    sums = [0.0] * len(w[0])
    for x, weights in zip(row, w, strict=True):
        sums = [s + x * y for s, y in zip(sums, weights, strict=True)]
    return [single(s) for s in sums]


def dot(p: list[float], q: list[float]) -> float:
    sums = [0.0] * 8
    for k, (x, y) in enumerate(zip(p, q, strict=True)):
        sums[k % 8] += x * y
    for half in (4, 2, 1):
        sums = [sums[i] + sums[i + half] for i in range(half)]
    return sums[0]


# Reductions

REDUCTIONS = ("sum", "mean", "largest", "smallest", "count")


def tree_sum(values: list[float]) -> float:
    total = 0.0
    for first in range(0, len(values), 32 * 32):
        few = 0.0
        for start in range(first, min(first + 32 * 32, len(values)), 32):
            part = values[start : start + 32]
            part += [0.0] * (32 - len(part))
            for half in (16, 8, 4, 2, 1):
                part = [part[i] + part[i + half] for i in range(half)]
            few += part[0]
        total += few
    return total


def scaled(x: float, e: int) -> float:
    try:
        return math.ldexp(x, e)
    except OverflowError:
        return math.copysign(math.inf, x)


def binned_sums(groups: list[list[float]], op: str) -> list[float]:
    """The sums of groups of one operand; the bins are those of the whole of it."""
    every = [x for group in groups for x in group]
    for x in every:
        if not math.isfinite(x):
            raise BatchError(f"{op}: expected finite values, got {x}")
    top = max(map(abs, every), default=0.0)
    if top == 0:
        return [0.0] * len(groups)
    b, e = 62 - len(every).bit_length(), math.frexp(top)[1]
    to_upper, of_upper = Fraction(2) ** (b - e), Fraction(2) ** (e - b)
    to_lower, sums = Fraction(2) ** (2 * b - e), []
    for group in groups:
        upper = lower = 0
        for x in group:
            exact = Fraction(x)
            q = int(exact * to_upper)
            upper += q
            lower += int((exact - q * of_upper) * to_lower)
        sums.append(scaled(float(upper), e - b) + scaled(float(lower), e - 2 * b))
    return sums


def extreme(values: list[float], better: Callable[[float, float], float]) -> float:
    if any(x != x for x in values):
        return math.nan
    found = values[0] if values else 0.0
    for x in values[1:]:
        found = better(found, x)
    return found


def reduced(op: str, groups: list[list[float]], binned: bool) -> list[float]:
    if op == "count":
        return [float(len(group)) for group in groups]
    if op in ("largest", "smallest"):
        better = MAPS["max" if op == "largest" else "min"]
        return [extreme(group, better) for group in groups]
    sums = binned_sums(groups, op) if binned else [tree_sum(group) for group in groups]
    if op == "sum":
        return sums
    return [s / len(group) if group else 0.0 for s, group in zip(sums, groups, strict=True)]


def capped(values: list[float], k: int) -> list[float]:
    """Chances in the ratio of values, of which k is the sum."""
    values = checked("cap", values)
    if sum(x > 0 for x in values) <= k:
        return [float(x > 0) for x in values]
    full: set[int] = set()
    while True:
        rest = [0.0 if i in full else x for i, x in enumerate(values)]
        c = divided(float(k - len(full)), binned_sums([rest], "cap")[0])
        more = {i for i, x in enumerate(values) if i not in full and c * x >= 1}
        if not more:
            break
        full |= more
    return [1.0 if i in full else c * x if x else 0.0 for i, x in enumerate(values)]


def labor_factors(values: list[list[float]], chances: list[list[float]], k: int) -> list[float]:
    """LABOR's factor of each column."""
    for a, q in zip(values, chances, strict=True):
        for pair in zip(a, q, strict=True):
            checked("labor", list(pair))
    return [labor_factor(a, q, k) for a, q in zip(values, chances, strict=True)]


def labor_factor(values: list[float], chances: list[float], k: int) -> float:
    candidates = [a > 0 and q > 0 for a, q in zip(values, chances, strict=True)]
    d = sum(candidates)
    if d == 0:
        return 0.0
    if k < 0 or d <= k:
        return divided(1.0, min(q for q, one in zip(chances, candidates, strict=True) if one))

    def total(c: float, term: Callable[[float, float], float]) -> float:
        of = zip(values, chances, candidates, strict=True)
        return tree_sum([term(a, q) if one and c * q < 1 else 0.0 for a, q, one in of])

    all_of = total(0.0, lambda a, _: a)
    goal = (all_of * all_of) * (divided(1.0, float(k)) - divided(1.0, float(d)))
    c = 0.0
    while True:
        above = total(c, lambda a, q: divided(a * a, q))
        following = divided(above, goal + total(c, lambda a, _: a * a))
        if not following > c:
            return c
        c = following


def level_factor(values: list[float], total: float) -> float:
    """The factor c of chances min(1, c v) with a sum, in one column."""
    candidates = [v for v in values if v > 0]
    if not candidates or not total > 0:
        return 0.0
    if len(candidates) <= total:
        return min(divided(2.0, min(candidates)), sys.float_info.max)
    c = 0.0
    while True:
        rest = tree_sum([v if c * v < 1 else 0.0 for v in values])
        full = sum(1 for v in values if not c * v < 1)
        following = divided(total - full, rest)
        if not following > c:
            return c
        c = following


def largest_places(values: list[float], k: int) -> list[int]:
    """The places of the k largest, in order of places; NaN is the smallest."""
    by = [(x == x, x if x == x else 0.0) for x in values]
    order = sorted(range(len(values)), key=lambda i: by[i], reverse=True)  # stable all the same
    return sorted(order if k < 0 else order[:k])


# Sampling


def bits_of_draw(state: int, j: int) -> int:
    return splitmix64((state + (j + 1) * GAMMA) & MASK64)


def uniform(bits: int) -> float:
    return ((bits >> 12) + 0.5) * 2.0**-52


def race_key(bits: int, weight: float) -> int:
    (m, a), (n, c) = math.frexp(-log(uniform(bits))), math.frexp(weight)
    r, k = m / n, a - c  # halves of both m and n, and so the same quotient
    if r < 1:
        r, k = 2 * r, k - 1
    return (k + 2048 << 52) + int((r - 1) * 2.0**52)


def checked(op: str, values: Iterable[float]) -> list[float]:
    found = list(values)
    for x in found:
        if not 0 <= x < math.inf:
            raise BatchError(f"{op}: expected finite values >= 0, got {x}")
    return found


def by_weight(weights: list[float], draws: Iterable[int]) -> list[int]:
    """For each draw of 64 bits the element in whose part of the whole it falls."""
    ends = list(accumulate(integers(weights)))
    return [bisect_right(ends, number * ends[-1] >> 64) for number in draws]


def smallest(keys: Sequence[tuple[int, ...]], k: int) -> list[int]:
    """The places of the k smallest keys, in order of places."""
    return sorted(sorted(range(len(keys)), key=lambda i: keys[i])[:k])


@dataclass
class Numbers:
    seed: int
    epoch: int
    batch: int

    def state(self, site: int, owner: int, purpose: int) -> int:
        return row_state(self.seed, self.epoch, self.batch, site, owner, purpose)

    def random(self, site: int, owner: int, purpose: int, batches: int, draw: int = 0) -> float:
        period, j = divmod(self.batch, batches)
        u, v = (
            uniform(bits_of_draw(row_state(self.seed, self.epoch, at, site, owner, purpose), draw))
            for at in (period, period + 1)
        )
        return gradual(u, v, j, batches)


def race_of_column(p: list[float], k: int, state: int) -> list[int]:
    candidates = [j for j, x in enumerate(p) if x > 0]
    if k < 0 or len(candidates) <= k:
        return candidates
    keys = [(race_key(bits_of_draw(state, j), p[j]), j) for j in candidates]
    return [candidates[i] for i in smallest(keys, k)]


def draws_of_column(p: list[float], k: int, state: int) -> list[int]:
    candidates = [j for j, x in enumerate(p) if x > 0]
    if k < 0 or not candidates:
        return candidates
    weights = [p[j] for j in candidates]
    return [candidates[i] for i in by_weight(weights, (bits_of_draw(state, j) for j in range(k)))]


def dependent_of_column(p: list[float], state: int) -> list[int]:
    """DepRound: two chances that are open meet, and one of them is settled."""
    for x in p:
        if not 0 <= x <= 1:
            raise BatchError(f"dependent_sample: expected chances in [0, 1], got {x}")
    one = 2**62
    chosen: set[int] = set()

    def met(a: tuple[int, int] | None, b: tuple[int, int], j: int) -> tuple[int, int] | None:
        if a is None:
            return b
        (i, x), (k, y), draw = a, b, bits_of_draw(state, j)
        if x + y < one:
            return (i if draw * (x + y) >> 64 < x else k), x + y
        first = draw * (2 * one - x - y) >> 64 < one - y
        chosen.add(i if first else k)
        return (k if first else i, x + y - one) if x + y > one else None

    left: list[tuple[int, int] | None] = [None] * 32
    for j, x in enumerate(p):
        own = int(Fraction(x) * one)
        if own == one:
            chosen.add(j)
        elif own:
            left[j % 32] = met(left[j % 32], (j, own), j)
    for half in (16, 8, 4, 2, 1):
        for lane in range(half):
            other = left[lane + half]
            if other is not None:
                left[lane] = met(left[lane], other, lane + half)
    if left[0] is not None:
        i, x = left[0]
        near = one >> 24
        if x >= near and (x > one - near or bits_of_draw(state, 0) >> 2 < x):
            chosen.add(i)
    return sorted(chosen)


def choose_vertices(
    numbers: Numbers, site: int, vertices: list[int], p: list[float], k: int, replace: bool
) -> list[int]:
    """The places of the vertices chosen: in order of places, or with replace in that of draws."""
    candidates = [i for i, x in enumerate(p) if x > 0]
    if k < 0 or not candidates or (not replace and len(candidates) <= k):
        return candidates
    if replace:
        weights = [p[i] for i in candidates]
        draws = (bits_of_draw(numbers.state(site, j, INDEX), 0) for j in range(k))
        return [candidates[i] for i in by_weight(weights, draws)]
    keys = []
    for i in candidates:
        state = numbers.state(site, vertices[i], CANDIDATE)
        keys.append((race_key(bits_of_draw(state, 0), p[i]), vertices[i], i))
    return [candidates[i] for i in smallest(keys, k)]
