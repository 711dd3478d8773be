"""Where formulas of SASE+ queries read their values: the event that is tried, a run's registers, a match's events."""

from __future__ import annotations

from dataclasses import dataclass, field

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.engine.compiled.code import AtRow, Code, Reader, Scalar, Slots, Truth, as_truth, typed
from kleene.engine.compiled.own_calls import BAD, state_of
from kleene.engine.compiled.registers import Registers, write_combined
from kleene.ir import expr as ir
from kleene.ir.expr import Position
from kleene.schema import FLOAT


@dataclass(frozen=True, slots=True)
class Rows:
    """Where the rows of a variable stand: `count` of them in `array` from `begin` on."""

    array: str
    begin: str
    count: str

    def row(self, index: str) -> str:
        return f"{self.array}[{self.begin} + {index}]"


AT_FIRST = (Position.EACH, Position.FIRST)
LATER = (Position.EACH, Position.CURRENT)


@dataclass(slots=True)
class OneEvent(Reader):
    """Reads the current event, which is tried for the variable as its first or as a later one."""

    own: str
    positions: tuple[Position, ...]

    def one_event(self, expression: ir.Expr) -> ir.Expr | None:
        for node in ir.walk(expression):
            if isinstance(node, ir.Attribute):
                is_own = node.variable == self.own and node.position in self.positions
                if node.variable is not None and not is_own:
                    return None
            elif isinstance(node, (ir.Events, ir.Length, ir.Aggregate)):
                return None
        return expression


@dataclass(slots=True)
class _OfEvents(Reader):
    """Reads several events; `walked` has the rows of variables, `index` which of them is looked at."""

    query: AnalyzedQuery
    walked: dict[str, Rows] = field(default_factory=dict, kw_only=True)
    index: dict[str, str] = field(default_factory=dict, kw_only=True)

    def one_event(self, expression: ir.Expr) -> ir.Expr | None:
        """An attribute of the expression, if all its attributes are of one event and nothing else is of any."""
        found: ir.Attribute | None = None
        places: set[object] = set()
        for node in ir.walk(expression):
            if isinstance(node, ir.Attribute):
                places.add(self._place(node))
                found = node
            elif isinstance(node, (ir.Events, ir.Length, ir.Aggregate, ir.IfPresent)):
                return None
        return found if len(places) == 1 else None

    def _place(self, node: ir.Attribute) -> object:
        """Where the attribute is read, the same for all that are of one event."""
        raise NotImplementedError


@dataclass(slots=True)
class OfRun(_OfEvents):
    """Reads the current event, the registers of the run, and the rows of variables that were collected."""

    registers: Registers
    own: str | None  # the variable that the current event is tried for; None when a variable is being left
    is_first: bool

    def read(self, expression: ir.Expr, code: Code) -> Scalar | Truth:
        match expression:
            case ir.Length(variable=variable):
                return self.registers.value(self.registers.get(self.number(variable), "count", None))
            case ir.Aggregate():
                variable, position = _aggregated(expression)
                if position is Position.SO_FAR and variable in self.index:
                    return _over_rows(expression, self.walked[variable], self.index[variable], code)
                return self.registers.aggregate(self.number(variable), expression, code)
        return Reader.read(self, expression, code)

    def states(self, aggregate: ir.Aggregate, code: Code) -> Slots:
        variable, position = _aggregated(aggregate)
        if position is Position.SO_FAR and variable in self.index:
            return _states_over_rows(aggregate, self.walked[variable], self.index[variable], code)
        return self.registers.states(self.number(variable), aggregate, code.layout.plain)

    def number(self, variable: str | None) -> int:
        return next(n for n, component in enumerate(self.query.components) if component.name == variable)

    def _place(self, node: ir.Attribute) -> object:
        if node.variable == self.own and node.position in (Position.EACH, Position.CURRENT):
            return "current"
        if node.variable == self.own and self.is_first and node.position is Position.FIRST:
            return "current"
        if node.variable in self.index and node.position not in (Position.FIRST, Position.LAST):
            return node.variable, node.position in (Position.PREVIOUS,)
        owner = self.number(node.variable)
        is_last = node.position in (Position.PREVIOUS, Position.LAST)
        return owner, "last" if is_last and self.query.components[owner].is_kleene else "first"

    def of_event(self, column: int, like: ir.Expr, code: Code) -> Scalar | Truth:
        assert isinstance(like, ir.Attribute)
        place = self._place(like)
        if place == "current":
            return code.column(column, "row")
        assert isinstance(place, tuple)
        if isinstance(place[0], str):
            index = self.index[place[0]]
            return code.column(column, self.walked[place[0]].row(f"{index} - 1" if place[1] else index))
        wanted = code.layout.columns[column].expression
        register = self.registers.get(place[0], place[1], wanted)
        value = self.registers.value(register)
        if not code.layout.has_mask[column]:
            value = Scalar(value.code)  # the column has no NULLs, so neither has the register
        return as_truth(value) if register.kind == "b" else value


def _aggregated(aggregate: ir.Aggregate) -> tuple[str, Position]:
    for node in ir.walk(aggregate.argument):
        if isinstance(node, (ir.Attribute, ir.Events)):
            assert node.variable is not None
            return node.variable, node.position
    raise AssertionError("an aggregate without a reference passed analysis")


@dataclass(slots=True)
class OfMatch(_OfEvents):
    """Reads the events of a finished match."""

    def read(self, expression: ir.Expr, code: Code) -> Scalar | Truth:
        match expression:
            case ir.Length(variable=variable):
                return Scalar(self.walked[variable].count)
            case ir.Aggregate():
                variable, position = _aggregated(expression)
                rows = self.walked[variable]
                count = self.index[variable] if position is Position.SO_FAR else rows.count
                return _over_rows(expression, rows, count, code)
        return Reader.read(self, expression, code)

    def states(self, aggregate: ir.Aggregate, code: Code) -> Slots:
        variable, position = _aggregated(aggregate)
        rows = self.walked[variable]
        return _states_over_rows(
            aggregate, rows, self.index[variable] if position is Position.SO_FAR else rows.count, code
        )

    def _place(self, node: ir.Attribute) -> str:
        assert node.variable is not None
        rows = self.walked[node.variable]
        match node.position:
            case Position.FIRST:
                return rows.row("0")
            case Position.LAST:
                return rows.row(f"{rows.count} - 1")
            case Position.PREVIOUS:
                return rows.row(f"{self.index[node.variable]} - 1")
        return rows.row(self.index.get(node.variable, "0"))

    def of_event(self, column: int, like: ir.Expr, code: Code) -> Scalar | Truth:
        assert isinstance(like, ir.Attribute)
        return code.column(column, self._place(like))


def of_match_in_rows(query: AnalyzedQuery, code: Code) -> OfMatch:
    """Reads match m: its rows stand in p[offsets[m]:] in order, lengths[m, c] of them for component c."""
    reader, begin = OfMatch(query), "offsets[m]"
    for number, component in enumerate(query.components):
        code.line(f"b{number} = {begin}")
        begin = f"b{number} + lengths[m, {number}]"
        reader.walked[component.name] = Rows("p", f"b{number}", f"lengths[m, {number}]")
    return reader


def _over_rows(expression: ir.Aggregate, rows: Rows, count: str, code: Code) -> Scalar | Truth:
    """The aggregate of the first `count` of the rows, computed by going through them."""
    argument, function = expression.argument, expression.function
    if expression.own is not None:
        return code.finished(expression, _states_over_rows(expression, rows, count, code))
    if isinstance(argument, ir.Events):
        return Scalar(f"({count})")
    total, known, index, row = (code.name() for _ in range(4))
    is_float = argument.type == FLOAT
    code.line(f"{total} = {'0.0' if is_float else '0'}")
    code.line(f"{known} = 0")
    with code.block(f"for {index} in range({count}):"):
        code.line(f"{row} = {rows.row(index)}")
        value = code.scalar(argument, AtRow(row))
        code.return_if_bad(value, argument)
        item = code.temp(value.code)
        skipped = value.null
        if is_float and function in ("min", "max"):
            skipped = f"({item} != {item})" if skipped is None else f"({skipped} or {item} != {item})"
        with code.block(f"if not {skipped}:" if skipped is not None else "if True:"):
            code.line(f"{known} += 1")
            with code.block(f"if {known} == 1:"):
                code.line(f"{total} = {item}")
            with code.block("else:"):
                if function == "last":
                    code.line(f"{total} = {item}")
                elif function not in ("count", "first"):
                    write_combined(function, argument, total, item, code)
    if function == "count":
        return Scalar(known)
    null = f"({known} == 0)"
    if function == "avg":
        return code.average(Scalar(total, null), Scalar(known), argument)
    return typed(Scalar(total, null), expression)


def _states_over_rows(expression: ir.Aggregate, rows: Rows, count: str, code: Code) -> Slots:
    """The state of an aggregate of the user's own after the first `count` of the rows."""
    state = state_of(expression, code.layout.plain)
    is_empty, index, row = (code.name() for _ in range(3))
    names = [code.name() for _ in state.kinds]
    for name, start in zip(names, state.start, strict=True):
        code.line(f"{name} = {code.constant(start)}")
    code.line(f"{is_empty} = True")
    with code.block(f"for {index} in range({count}):"):
        code.line(f"{row} = {rows.row(index)}")
        value = code.scalar(expression.argument, AtRow(row))
        code.return_if_bad(value, expression.argument)
        with code.block(f"if not {value.null}:" if value.null is not None else "if True:"):
            after, status = code.stepped(expression, state, names, value.code)
            code.return_if(f"{status} == {BAD}", code.layout.error(expression))
            for name, number in zip(names, after, strict=True):
                code.line(f"{name} = {number}")
            code.line(f"{is_empty} = False")
    return Slots(state, tuple(names), is_empty)
