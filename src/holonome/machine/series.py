"""Machine code for Taylor coefficients.

The coefficients of y, of orders 0 to N, from y′ = F(t, y): an order k of F gives order k + 1 of y.  For each
order the code has two parts (:mod:`holonome.equations.series`): all convolutions, as sums of products of
vectors, and then everything else, which is affine and as long as the program.

Operands of the convolutions stand side by side in two tables, a row for each order and a column for each
convolution, so Σ x_j y_{k−j} for eight convolutions is one multiplication of registers for each j, whatever
operations they belong to.

    small models    every order is written down; N is known, rows of the tables stay in registers, and
                    products with the newest coefficients enter last, so that nothing waits for them
    others          one loop over the orders; the code is hardly longer than that of y′, whatever N
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from typing import NamedTuple

from holonome.equations.series import Convolution, Series, Term
from holonome.machine.context import PARAMETERS, SINGULAR
from holonome.machine.layout import padded
from holonome.machine.llvm import FLAGS, Writer, write_operations

ORDER, UNIT = 0, 1
"""Where the work space has N and the unit of time."""
_FREE = 4
_LANES = 8
_STRAIGHT_UP_TO = 8
"""Convolutions up to which all orders are written down."""
_MOST_VECTORS = 4
"""Vectors of convolutions that the loop sums together."""


class Code(NamedTuple):
    """A kernel: z begins with N and the unit of time and is work space of this size, out receives N + 1 rows
    of `padded` length, the coefficients of y for time in that unit.
    """

    text: str
    work: int


def is_straight(series: Series) -> bool:
    """Whether the code is made for one N."""
    return len(series.convolutions) <= _STRAIGHT_UP_TO


def series_assembly(
    series: Series, name: str, order: int, block: int = 0, straight: bool | None = None
) -> Code:
    """LLVM assembly of the kernel for orders up to this one, or for this one if it is written down
    ``straight``, by default where that pays.  A basic block of a loop has so many lines at most.
    """
    if straight is None:
        straight = is_straight(series)
    kind = _Straight if straight else _Looped
    return kind(series, order, block).code(name)


class _Orders(ABC):
    """What both kinds of code have in common."""

    def __init__(self, series: Series, order: int, block: int) -> None:
        self.series, self.order, self.block = series, order, block
        self.size = len(series.outputs)
        self.stride = padded(self.size)
        self.write = Writer()
        self.values: dict[int, str] = {}
        self.unit = ""
        self.state: list[str | None] = [None] * self.size
        self.entries = defaultdict[int, list[int]](list)
        for i, number in enumerate(series.outputs):
            self.entries[number].append(i)

    def code(self, name: str) -> Code:
        write, series = self.write, self.series
        write.lines.append(f"%p = getelementptr double, ptr %context, i64 {PARAMETERS}")
        self.unit = write.load("%z", UNIT)
        for i in range(self.size):
            write.store(write.load("%y", i), "%out", i)
        self.values = write_operations(write, series.operations, self.block, self.store_first)
        margin = [self.values[i] for i in series.margin] or ["1.0"]
        regular = write.value(f"fcmp ogt double {margin[0]}, 0.0")
        work = self.higher_orders()
        return Code(write.function(name, write.value(f"select i1 {regular}, i32 0, i32 {SINGULAR}")), work)

    def store_first(self, number: int, value: str) -> None:
        """What has to be stored of the value of an operation at order 0: order 1 of y."""
        for i in self.entries.get(number, ()):
            self.state[i] = rate = self.times(value, self.unit)
            self.write.store(rate, "%out", self.stride + i)

    def store(self, number: int, value: str | None) -> None:  # noqa: B027
        """What has to be stored of the k-th coefficient of an operation."""

    @abstractmethod
    def higher_orders(self) -> int:
        """Write the orders above 0 of y′; the size of the work space."""

    @abstractmethod
    def given(self, argument: int, entry: int) -> str | None:
        """The k-th coefficient of an input; None for zero."""

    @abstractmethod
    def factor(self, number: int) -> str:
        """A value of order 0."""

    @abstractmethod
    def convolved(self, number: int) -> str | None:
        """The k-th sum of a convolution; None for zero."""

    @abstractmethod
    def over_order(self, value: str) -> str:
        """The value divided by k."""

    def coefficients(self) -> dict[int, str | None]:
        """The k-th coefficients of all operations; what takes longest enters a sum last."""
        found, depth, series = dict[int, str | None](), dict[int, int](), self.series
        for number, row in series.rows.items():
            name, *operands = series.operations[number]
            self.begin_block()
            if name == "input":
                found[number], depth[number] = self.given(*operands), 0
                self.store(number, found[number])
                continue
            total, divided = (
                self.sum_of(None, [(self.convolved(i), f) for i, f in terms])
                for terms in (row.convolutions, row.divided)
            )
            if divided is not None:
                total = self.plus(total, self.over_order(divided))
            terms = sorted(row.terms, key=lambda term: depth[term[0]])
            total = self.sum_of(total, [(found[a], f) for a, f in terms])
            if row.condition is not None and total is not None:
                holds = self.write.nonzero(self.factor(row.condition))
                total = self.write.value(f"select i1 {holds}, double {total}, double 0.0")
            found[number], depth[number] = total, 1 + max((depth[a] for a, _ in terms), default=0)
            self.store(number, total)
        return found

    def begin_block(self) -> None:  # noqa: B027
        """End a basic block that has become too long."""

    def sum_of(self, total: str | None, terms: list[tuple[str | None, int | None]]) -> str | None:
        """The total and these coefficients with their factors."""
        for value, factor in terms:
            if value is None:
                continue
            if factor is None:
                total = self.plus(total, value)
            elif self.series.operations[factor] == ("const", -1.0):
                total = self.minus(total, value)
            else:
                total = self.plus(total, self.times(value, self.factor(factor)))
        return total

    def times(self, a: str, b: str) -> str:
        return self.write.value(f"fmul {FLAGS} double {a}, {b}")

    def plus(self, a: str | None, b: str) -> str:
        return b if a is None else self.write.value(f"fadd {FLAGS} double {a}, {b}")

    def minus(self, a: str | None, b: str) -> str:
        if a is None:
            return self.write.value(f"fneg double {b}")
        return self.write.value(f"fsub {FLAGS} double {a}, {b}")


class _Straight(_Orders):
    """Every order written down; what is zero is left out."""

    def __init__(self, series: Series, order: int, block: int) -> None:
        super().__init__(series, order, 0)
        count = len(series.convolutions)
        self.lanes = self.write.lanes(next((width for width in (1, 2, 4) if count <= width), _LANES))
        self.k = 0
        self.found: dict[int, dict[int, str | None]] = {}
        self.weighted: dict[int, dict[int, str | None]] = {}
        self.tables: dict[int, tuple[str, str]] = {}
        self.sums: list[str | None] = []

    def higher_orders(self) -> int:
        write = self.write
        for k in range(1, self.order):
            self.k = k
            self.sums = [self._total(i, among) for i, among in enumerate(self._older())]
            self.found[k] = self.coefficients()
            self._keep()
            rates = [self.found[k].get(number) for number in self.series.outputs]
            share = self.times(self.unit, write.constant(1 / (k + 1)))
            self.state = [None if rate is None else self.times(rate, share) for rate in rates]
            for i, value in enumerate(self.state):
                write.store(value or "0.0", "%out", (k + 1) * self.stride + i)
        return _FREE + _LANES

    def given(self, argument: int, entry: int) -> str | None:
        if argument == 0:
            return self.unit if self.k == 1 else None
        return self.state[entry]

    def factor(self, number: int) -> str:
        return self.values[number]

    def convolved(self, number: int) -> str | None:
        return self.sums[number]

    def over_order(self, value: str) -> str:
        return self.times(value, self.write.constant(1 / self.k))

    def _older(self) -> list[str | None]:
        """The sums over 1 < j < k − 1 of all convolutions, whose operands have been known for an order; in
        two halves that do not wait for each other.
        """
        count, lanes, k = len(self.series.convolutions), self.lanes, self.k
        halves: list[str] = []
        older = range(2, k - 1) if count else ()
        for turn, j in enumerate(sorted(older, key=lambda j: max(j, k - j))):
            product = lanes.value(f"fmul {FLAGS}", self.tables[j][0], self.tables[k - j][1])
            if turn < 2:
                halves.append(product)
            else:
                halves = [halves[1], lanes.value(f"fadd {FLAGS}", halves[0], product)]
        if not halves:
            return [None] * count
        total = halves[0] if len(halves) == 1 else lanes.value(f"fadd {FLAGS}", *halves)
        if lanes.width == 1:
            return [total]
        lanes.store(total, "%z", _FREE)
        return [self.write.load("%z", _FREE + i) for i in range(count)]

    def _total(self, number: int, total: str | None) -> str | None:
        """With the newest coefficients, one by one."""
        wanted, k = self.series.convolutions[number], self.k
        for j in {2: (1,)}.get(k, (k - 1, 1) if k > 2 else ()):
            x, y = self._operand(wanted, j), self.found[k - j].get(wanted.y)
            if x is not None and y is not None:
                total = self.plus(total, self.times(x, y))
        return total

    def _operand(self, wanted: Convolution, j: int) -> str | None:
        return (self.weighted if wanted.weighted else self.found)[j].get(wanted.x)

    def _keep(self) -> None:
        """Enter the coefficients into the tables."""
        k, write, convolutions = self.k, self.write, self.series.convolutions
        weight, weighted = write.constant(float(k)), dict[int, str | None]()
        for x in {wanted.x: None for wanted in convolutions if wanted.weighted}:
            value = self.found[k].get(x)
            weighted[x] = None if value is None else self.times(value, weight)
        self.weighted[k] = weighted
        if convolutions and 1 < k < self.order - 2:
            padding = ["0.0"] * (self.lanes.width - len(convolutions))
            x = [self._operand(wanted, k) or "0.0" for wanted in convolutions]
            y = [self.found[k].get(wanted.y) or "0.0" for wanted in convolutions]
            self.tables[k] = self.lanes.gathered(x + padding), self.lanes.gathered(y + padding)


class _Looped(_Orders):
    """One loop over the orders.  Work space: N, the factors, the sums, both tables."""

    def __init__(self, series: Series, order: int, block: int) -> None:
        super().__init__(series, order, block)
        count = len(series.convolutions)
        vectors = min(_MOST_VECTORS, -(-count // _LANES))
        self.lanes = self.write.lanes(_LANES)
        self.together = vectors * _LANES
        self.row = -(-count // self.together) * self.together if count else 0
        factors = self._factors()
        self.place = {number: _FREE + i for i, number in enumerate(factors)}
        self.sums = -(-(_FREE + len(factors)) // _LANES) * _LANES
        self.x = self.sums + self.row
        self.y = self.x + (order + 1) * self.row
        self.columns_of = defaultdict[int, list[tuple[str, int, bool]]](list)
        for column, wanted in enumerate(series.convolutions):
            self.columns_of[wanted.x].append(("x", column, wanted.weighted))
            self.columns_of[wanted.y].append(("y", column, False))
        self.full = 0

    def higher_orders(self) -> int:
        write, row = self.write, self.row
        last = write.value(f"fptosi double {write.load('%z', ORDER)} to i64")
        write.lines += [
            f"%higher = icmp sgt i64 {last}, 1",
            "br label %enter",
            "enter:",
            "br i1 %higher, label %order, label %leave",
            "order:",
            "%k = phi i64 [1, %enter], [%next, %end]",
            "%next = add i64 %k, 1",
        ]
        self._constants()
        self._convolve()
        self.full = len(write.lines) + self.block
        self.coefficients()
        self._store_constants()
        write.lines += [
            "br label %end",
            "end:",
            f"%again = icmp slt i64 %next, {last}",
            "br i1 %again, label %order, label %leave",
            "leave:",
        ]
        return self.y + (self.order + 1) * row

    def begin_block(self) -> None:
        lines = self.write.lines
        if self.block and len(lines) > self.full:
            label = f"part{len(lines)}"
            lines += [f"br label %{label}", f"{label}:"]
            self.full = len(lines) + self.block

    def _factors(self) -> list[int]:
        """The values of order 0 that later orders need, beside numbers."""
        needed = dict[int, None]()
        for row in self.series.rows.values():
            terms: list[Term] = [*row.terms, *row.convolutions, *row.divided]
            needed |= {factor: None for _, factor in terms if factor is not None}
            needed |= {} if row.condition is None else {row.condition: None}
        return [number for number in needed if self.series.operations[number][0] != "const"]

    def store_first(self, number: int, value: str) -> None:
        super().store_first(number, value)
        if number in self.place:
            self.write.store(value, "%z", self.place[number])

    def _constants(self) -> None:
        """k and what follows from it."""
        write = self.write
        self.weight = write.value("sitofp i64 %k to double")
        self.share = write.value(f"fdiv double 1.0, {self.weight}")
        following = write.value("sitofp i64 %next to double")
        self.next_share = write.value(f"fdiv double {self.unit}, {following}")
        first = write.value("icmp eq i64 %k, 1")
        self.time = write.value(f"select i1 {first}, double {self.unit}, double 0.0")
        self.out = write.address("%out", write.value(f"mul i64 %k, {self.stride}"))
        at = write.value(f"mul i64 %k, {self.row}")
        self.x_k, self.y_k = (write.address(write.address("%z", at), begin) for begin in (self.x, self.y))

    def _convolve(self) -> None:
        """All sums of order k, as many columns of the tables together as there are accumulators."""
        write, lanes, lines = self.write, self.lanes, self.write.lines
        if not self.row:
            return
        columns = range(0, self.together, _LANES)
        lines += ["br label %columns", "columns:", "%column = phi i64 [0, %order], [%others, %summed]"]
        x, y = write.address(write.address("%z", self.x), "%column"), write.address(self.y_k, "%column")
        lines += ["br label %sum", "sum:", "%j = phi i64 [1, %columns], [%j1, %product]"]
        lines += [f"%s{c} = phi {lanes.real} [zeroinitializer, %columns], [%n{c}, %product]" for c in columns]
        lines += ["%more = icmp slt i64 %j, %k", "br i1 %more, label %product, label %summed", "product:"]
        ahead = write.value(f"mul i64 %j, {self.row}")
        x, y = write.address(x, ahead), write.address(y, write.value(f"sub i64 0, {ahead}"))
        for c in columns:
            product = lanes.value(f"fmul {FLAGS}", lanes.load(x, c), lanes.load(y, c))
            lines.append(f"%n{c} = fadd {FLAGS} {lanes.real} %s{c}, {product}")
        lines += ["%j1 = add i64 %j, 1", "br label %sum", "summed:"]
        sums = write.address(write.address("%z", self.sums), "%column")
        for c in columns:
            lanes.store(f"%s{c}", sums, c)
        lines += [
            f"%others = add i64 %column, {self.together}",
            f"%left = icmp slt i64 %others, {self.row}",
            "br i1 %left, label %columns, label %linear",
            "linear:",
        ]

    def given(self, argument: int, entry: int) -> str:
        return self.time if argument == 0 else self.write.load(self.out, entry)

    def factor(self, number: int) -> str:
        name, *value = self.series.operations[number]
        return self.write.constant(value[0]) if name == "const" else self.write.load("%z", self.place[number])

    def convolved(self, number: int) -> str:
        return self.write.load("%z", self.sums + number)

    def over_order(self, value: str) -> str:
        return self.times(value, self.share)

    def store(self, number: int, value: str | None) -> None:
        """Enter a coefficient into the tables, and into the next order of y."""
        write, value, weighted = self.write, value or "0.0", None
        for table, column, weight in self.columns_of.get(number, ()):
            if weight and weighted is None:
                weighted = self.times(value, self.weight)
            write.store(weighted if weight and weighted else value, getattr(self, f"{table}_k"), column)
        for i in self.entries.get(number, ()):
            write.store(self.times(value, self.next_share), self.out, self.stride + i)

    def _store_constants(self) -> None:
        """The rates that do not change have no higher orders."""
        for i, number in enumerate(self.series.outputs):
            if number not in self.series.rows:
                self.write.store("0.0", self.out, self.stride + i)
