"""Generated functions -> instructions (`operations.py`), so that a query can run before machine code is made for it.

What generated code is made of is little: numbers, comparisons, reads of arrays, and jumps. So a formula is translated
from its source, and means the same as the machine code that is made from that source. What is not known here, such as
functions of the user's own, is a `NotTranslatableError`, and the query then waits for machine code.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kleene.engine.compiled.tables.operations import COMPARISONS, COMPUTING, HELPERS, NUMBERS, READS

Instruction = list[int]
_COMPARED = {ast.Eq: "equal", ast.NotEq: "unequal", ast.Lt: "less", ast.LtE: "less_or_equal"}
_COMPARED |= {ast.Gt: "greater", ast.GtE: "greater_or_equal"}
_OPPOSITES = {
    "equal": "unequal",
    "unequal": "equal",
    "less": "greater_or_equal",
    "less_or_equal": "greater",
    "greater": "less_or_equal",
    "greater_or_equal": "less",
}
_SIGNS = {ast.Add: "plus", ast.Sub: "minus", ast.Mult: "times"}
_WHOLE = {
    ast.FloorDiv: "floor_divide",
    ast.Mod: "modulo",
    ast.LShift: "shift_left",
    ast.RShift: "shift_right",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "exclusive_or",
}
_READERS = {"int64": "read_whole", "int32": "read_short", "uint8": "read_byte", "float64": "read_float"}
_WRITERS = {"int64": "write_whole", "uint8": "write_byte", "float64": "write_float"}

_WRITING_ONCE = {
    number
    for name, number in NUMBERS.items()
    if (name in COMPUTING and COMPUTING[name].results == 1 and not name.startswith("move"))
    or name.removesuffix("_at").removesuffix("_in_row") in READS
}


class NotTranslatableError(Exception):
    """There are no instructions for a part of the code."""


@dataclass(frozen=True, slots=True)
class Value:
    """A register: its file, i or f, and its number. `known` is its value where that is known beforehand."""

    file: str
    number: int
    known: int | float | None = None


@dataclass(frozen=True, slots=True)
class ArrayAt:
    """An array: the type of its items, and the register with its address.

    Of a table, `width` is the length of its rows; where only the call knows that, `width_at` is its register.
    """

    items: str
    address: int
    width: int | None = 1
    width_at: int | None = None


@dataclass(slots=True)
class Files:
    """Registers as they are given out, with the numbers that stand in them from the beginning."""

    whole: dict[int, int] = field(default_factory=dict)
    floats: dict[int, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=lambda: {"i": 0, "f": 0})

    def new(self, file: str, count: int = 1) -> int:
        self.counts[file] += count
        return self.counts[file] - count

    def constant(self, value: float | int) -> Value:
        if isinstance(value, float):
            for number, known in self.floats.items():
                if repr(known) == repr(value):
                    return Value("f", number, value)
            number = self.new("f")
            self.floats[number] = value
            return Value("f", number, value)
        value = int(value)
        if not -(2**63) <= value < 2**63:
            raise NotTranslatableError("a number of more than 64 bits")
        for number, known_whole in self.whole.items():
            if known_whole == value:
                return Value("i", number, value)
        number = self.new("i")
        self.whole[number] = value
        return Value("i", number, value)


@dataclass(slots=True)
class Place:
    """What names of the code stand for: numbers that are known, registers, arrays, tuples of these."""

    names: dict[str, int | float | Value | ArrayAt]
    columns: Sequence[ArrayAt]
    integers: Sequence[Value]
    floats: Sequence[Value]
    functions: Mapping[str, ast.FunctionDef]  # that may be inserted where they are called


class Translator:
    """Makes instructions of one function. `by_rows` makes them for blocks of rows: no jumps, and masks instead."""

    def __init__(self, files: Files, place: Place, first: int = 0, by_rows: bool = False) -> None:
        self.files, self.place, self.by_rows, self.first = files, place, by_rows, first
        self.instructions: list[Instruction] = []
        self._names: dict[str, int | float | Value | ArrayAt] = dict(place.names)
        self._mask: Value | None = None
        self._variables: set[tuple[str, int]] = set()  # the registers of names
        self._landed = -1  # where a jump leads to, last

    # --- instructions ----------------------------------------------------------------------------------------------

    def emit(self, name: str, target: int = 0, *operands: int) -> int:
        padded = [*operands, *[0] * (4 - len(operands))]
        self.instructions.append([NUMBERS[name], target, *padded])
        return len(self.instructions) - 1

    def is_return(self, instruction: Instruction) -> bool:
        return instruction[0] == NUMBERS["return"]

    def _here(self) -> int:
        return self.first + len(self.instructions)

    def _land(self, jumps: Sequence[int]) -> None:
        for jump in jumps:
            self.instructions[jump][1] = self._here()
        if jumps:
            self._landed = len(self.instructions)

    def _new(self, file: str) -> Value:
        return Value(file, self.files.new(file))

    def _computed(self, name: str, *operands: Value, target: Value | None = None) -> Value:
        operation = COMPUTING[name]
        given = [self._as(file, operand) for file, operand in zip(operation.kinds[1:], operands, strict=True)]
        if target is None or target.file != operation.kinds[0]:
            target = Value(operation.kinds[0], self.files.new(operation.kinds[0]))
            if operation.results == 2:
                self.files.new("i")  # the second is behind the first
        self.emit(name, target.number, *(operand.number for operand in given))
        return target

    def _as(self, file: str, value: Value) -> Value:
        if value.file == file:
            return value
        if file == "i":
            raise NotTranslatableError("a float in place of a whole number")
        if value.known is not None:
            return self.files.constant(float(value.known))
        return self._computed("float_of", value)

    # --- statements ------------------------------------------------------------------------------------------------

    def body(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._assign(name, value)
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                found = [self._copied(self.value(value)) for value in values]
                for target, one in zip(targets, found, strict=True):
                    self._bind(_name_of(target), one)
            case ast.Assign(targets=[ast.Tuple(elts=[one, other])], value=ast.Call() as call):
                both = self.value(call)
                assert both.file == "i"
                self._bind(_name_of(one), both)
                self._bind(_name_of(other), Value("i", both.number + 1))
            case ast.Assign(targets=[ast.Subscript() as target], value=value):
                self._store(target, self.value(value))
            case ast.AugAssign(target=target, op=operator, value=value):
                loaded = ast.parse(ast.unparse(target), mode="eval").body
                new = self.value(ast.BinOp(loaded, operator, value))
                if isinstance(target, ast.Name):
                    self._bind(target.id, new)
                else:
                    assert isinstance(target, ast.Subscript)
                    self._store(target, new)
            case ast.If():
                self._if(statement)
            case ast.Return(value=value) if not self.by_rows and value is not None:
                self.emit("return", 0, self._as("i", self.value(value)).number)
            case ast.While() if not self.by_rows:
                self._while(statement)
            case ast.For() if not self.by_rows:
                self._for(statement)
            case _:
                raise NotTranslatableError(f"the statement {ast.unparse(statement)[:60]}")

    def _copied(self, value: Value) -> Value:
        return self._computed(f"move_{value.file}", value)

    def _assign(self, name: str, expression: ast.expr) -> None:
        self._bind(name, self.value(expression))

    def _bind(self, name: str, value: Value) -> None:
        """Gives the name the value. A name has one register, since the code may come by again."""
        known = self._names.get(name)
        if not isinstance(known, Value):
            known = self._new(value.file)
            self._names[name] = known
        value = self._as(known.file, value)
        if self._mask is not None:
            self._computed(f"select_{known.file}", self._mask, value, known, target=known)
        elif not self._retargeted(value, known):
            self._computed(f"move_{known.file}", value, target=known)
        self._variables.add((known.file, known.number))

    def _retargeted(self, value: Value, target: Value) -> bool:
        """Lets the instruction that made a value write it to the target; not where two ways lead here."""
        if not self.instructions or (value.file, value.number) in self._variables or value.known is not None:
            return False
        last = self.instructions[-1]
        if last[0] not in _WRITING_ONCE or last[1] != value.number or self._landed == len(self.instructions):
            return False
        last[1] = target.number
        return True

    def _store(self, target: ast.Subscript, value: Value) -> None:
        if self.by_rows:
            raise NotTranslatableError("a store for a block of rows")
        array, row, column = self._item(target)
        value = self._as("f" if array.items == "float64" else "i", value)
        if array.items not in _WRITERS or isinstance(column, Value) or array.width is None:
            raise NotTranslatableError(f"a store to {ast.unparse(target)}")
        self.emit(_WRITERS[array.items], value.number, array.address, row.number, array.width, column)

    def _if(self, statement: ast.If) -> None:
        known = self.known(statement.test)
        if known is not None:
            self.body(statement.body if known else statement.orelse)
        elif self.by_rows:
            self._masked_if(statement)
        else:
            to_else = self._jumps_unless(statement.test)
            self.body(statement.body)
            if not statement.orelse:
                self._land(to_else)
                return
            over = self.emit("jump")
            self._land(to_else)
            self.body(statement.orelse)
            self._land([over])

    def _masked_if(self, statement: ast.If) -> None:
        test, before = self._as("i", self.value(statement.test)), self._mask
        for part, mask in ((statement.body, test), (statement.orelse, None)):
            if part:
                mask = self._computed("not", test) if mask is None else mask
                self._mask = mask if before is None else self._computed("and", before, mask)
                self.body(part)
        self._mask = before

    def _while(self, loop: ast.While) -> None:
        again = self._here()
        out = self._jumps_unless(loop.test)
        self.body(loop.body)
        self.emit("jump", again)
        self._land(out)

    def _for(self, loop: ast.For) -> None:
        match loop:
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=arguments)):
                first = ast.Constant(0) if len(arguments) == 1 else arguments[0]
                end = self._copied(self.value(arguments[-1]))
                self._assign(name, first)
                index = self._names[name]
                assert isinstance(index, Value)
                again = self._here()
                out = self.emit("jump_unless_less_i", 0, index.number, end.number)
                self.body(loop.body)
                self._computed("plus_i", index, self.files.constant(1), target=index)
                self.emit("jump", again)
                self._land([out])
            case _:
                raise NotTranslatableError("a loop over something else than numbers")

    # --- conditions ------------------------------------------------------------------------------------------------

    def known(self, test: ast.expr) -> bool | None:
        """Whether the condition holds, if that is known beforehand."""
        match test:
            case ast.Constant(value=value):
                return bool(value)
            case ast.Name(id=name) if isinstance(self._names.get(name), (int, float)):
                return bool(self._names[name])
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                one, other = self._known_number(left), self._known_number(right)
                if one is not None and other is not None:
                    sign = COMPARISONS[_COMPARED[type(operator)]]
                    return bool(eval(f"one {sign} other", {"one": one, "other": other}))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                found = self.known(operand)
                return None if found is None else not found
            case ast.BoolOp(op=operator, values=values):
                found_all = [self.known(value) for value in values]
                decides = isinstance(operator, ast.Or)
                if decides in found_all:
                    return decides
                return None if None in found_all else not decides
        return None

    def _known_number(self, expression: ast.expr) -> int | float | None:
        match expression:
            case ast.Constant(value=bool() | int() | float() as value):
                return value
            case ast.Name(id=name):
                found = self._names.get(name)
                return found if isinstance(found, (int, float)) else None
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                inner = self._known_number(operand)
                return None if inner is None else -inner
        return None

    def _jumps_unless(self, test: ast.expr) -> list[int]:
        """Jumps, still without an aim, that are taken where the condition does not hold."""
        known = self.known(test)
        if known is not None:
            return [] if known else [self.emit("jump")]
        match test:
            case ast.BoolOp(op=ast.And(), values=values):
                return [jump for value in values for jump in self._jumps_unless(value)]
            case ast.BoolOp(op=ast.Or(), values=values):
                to_body = [jump for value in values[:-1] for jump in self._jumps_if(value)]
                found = self._jumps_unless(values[-1])
                self._land(to_body)
                return found
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._jumps_if(operand)
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                return [self._compared_jump(_COMPARED[type(operator)], left, right)]
        return [self.emit("jump_unless", 0, self._as("i", self.value(test)).number)]

    def _jumps_if(self, test: ast.expr) -> list[int]:
        known = self.known(test)
        if known is not None:
            return [self.emit("jump")] if known else []
        match test:
            case ast.BoolOp(op=ast.Or(), values=values):
                return [jump for value in values for jump in self._jumps_if(value)]
            case ast.BoolOp(op=ast.And(), values=values):
                to_end = [jump for value in values[:-1] for jump in self._jumps_unless(value)]
                found = self._jumps_if(values[-1])
                self._land(to_end)
                return found
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._jumps_unless(operand)
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                name = _COMPARED[type(operator)]
                one, other = self._alike(self.value(left), self.value(right))
                if one.file == "i":
                    return [self.emit(f"jump_unless_{_OPPOSITES[name]}_i", 0, one.number, other.number)]
                # A comparison with NaN fails, and so does its opposite.
                holds = self._computed(f"{name}_f", one, other)
                return [self.emit("jump_if", 0, holds.number)]
        return [self.emit("jump_if", 0, self._as("i", self.value(test)).number)]

    def _compared_jump(self, name: str, left: ast.expr, right: ast.expr) -> int:
        one, other = self._alike(self.value(left), self.value(right))
        return self.emit(f"jump_unless_{name}_{one.file}", 0, one.number, other.number)

    def _alike(self, one: Value, other: Value) -> tuple[Value, Value]:
        file = "f" if "f" in (one.file, other.file) else "i"
        return self._as(file, one), self._as(file, other)

    # --- values ----------------------------------------------------------------------------------------------------

    def value(self, expression: ast.expr) -> Value:
        known = self._known_number(expression)
        if known is not None:
            return self.files.constant(known if isinstance(known, float) else int(known))
        match expression:
            case ast.Name(id=name):
                found = self._names.get(name)
                if not isinstance(found, Value):
                    raise NotTranslatableError(f"the name {name}")
                return found
            case ast.Subscript():
                return self._read(expression)
            case ast.Compare():
                return self._comparison(expression)
            case ast.BoolOp() | ast.UnaryOp(op=ast.Not()) if not self.by_rows:
                return self._by_jumps(expression)
            case ast.BoolOp(op=operator, values=values):
                name = "and" if isinstance(operator, ast.And) else "or"
                first, *others = [self.value(value) for value in values]
                for other in others:
                    first = self._computed(name, first, other)
                return first
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._computed("not", self.value(operand))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                inner = self.value(operand)
                return self._computed(f"negative_{inner.file}", inner)
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return self._computed("inverted", self.value(operand))
            case ast.BinOp(left=left, op=operator, right=right):
                return self._arithmetic(self.value(left), operator, self.value(right))
            case ast.IfExp():
                return self._choice(expression)
            case ast.Call():
                return self._call(expression)
            case ast.Attribute(value=ast.Name(id="math"), attr="inf" | "nan" as name):
                return self.files.constant(float(name))
        raise NotTranslatableError(f"the expression {ast.unparse(expression)[:60]}")

    def _by_jumps(self, expression: ast.expr) -> Value:
        target = self._new("i")
        out = self._jumps_unless(expression)
        self._computed("move_i", self.files.constant(1), target=target)
        over = self.emit("jump")
        self._land(out)
        self._computed("move_i", self.files.constant(0), target=target)
        self._land([over])
        return target

    def _comparison(self, expression: ast.Compare) -> Value:
        sides = [self.value(part) for part in (expression.left, *expression.comparators)]
        found: Value | None = None
        for one, operator, other in zip(sides, expression.ops, sides[1:], strict=False):
            pair = self._alike(one, other)
            test = self._computed(f"{_COMPARED[type(operator)]}_{pair[0].file}", *pair)
            found = test if found is None else self._computed("and", found, test)
        assert found is not None
        return found

    def _arithmetic(self, one: Value, operator: ast.operator, other: Value) -> Value:
        if isinstance(operator, ast.Div):
            return self._computed("divide_numbers", one, other)
        if type(operator) in _WHOLE:
            return self._computed(_WHOLE[type(operator)], one, other)
        one, other = self._alike(one, other)
        return self._computed(f"{_SIGNS[type(operator)]}_{one.file}", one, other)

    def _choice(self, expression: ast.IfExp) -> Value:
        known = self.known(expression.test)
        if known is not None:
            return self.value(expression.body if known else expression.orelse)
        if self.by_rows:
            test = self.value(expression.test)
            pair = self._alike(self.value(expression.body), self.value(expression.orelse))
            return self._computed(f"select_{pair[0].file}", test, *pair)
        # Both sides are tried for their files first, which may differ: (0 if … else 1.5)
        file = "f" if "f" in (self._file_of(expression.body), self._file_of(expression.orelse)) else "i"
        target = self._new(file)
        out = self._jumps_unless(expression.test)
        self._computed(f"move_{file}", self._as(file, self.value(expression.body)), target=target)
        over = self.emit("jump")
        self._land(out)
        self._computed(f"move_{file}", self._as(file, self.value(expression.orelse)), target=target)
        self._land([over])
        return target

    def _file_of(self, expression: ast.expr) -> str:
        mark, counts = len(self.instructions), dict(self.files.counts)
        file = self.value(expression).file
        del self.instructions[mark:]
        # Constants that were given a place keep it.
        highest = {"i": max(self.files.whole, default=-1) + 1, "f": max(self.files.floats, default=-1) + 1}
        self.files.counts = {kind: max(counts[kind], highest[kind]) for kind in counts}
        return file

    def _call(self, call: ast.Call) -> Value:
        match call:
            case ast.Call(func=ast.Name(id="abs"), args=[operand]):
                inner = self.value(operand)
                return self._computed(f"absolute_{inner.file}", inner)
            case ast.Call(func=ast.Name(id="min" | "max" as name), args=[left, right]):
                pair = self._alike(self.value(left), self.value(right))
                return self._computed(f"{'least' if name == 'min' else 'greatest'}_{pair[0].file}", *pair)
            case ast.Call(func=ast.Name(id="float"), args=[operand]):
                return self._as("f", self.value(operand))
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)]):
                return self._named(f"len({name})")
            case ast.Call(func=ast.Attribute(value=ast.Name(id="math"), attr="copysign"), args=[left, right]):
                return self._computed("copysign", self.value(left), self.value(right))
            case ast.Call(func=ast.Name(id=name), args=arguments) if name in HELPERS:
                return self._computed(name, *(self.value(argument) for argument in arguments))
            case ast.Call(func=ast.Name(id="first_after"), args=[negative, keys, *others]) if not self.by_rows:
                numbers = [self.value(other) for other in others]
                first = self.files.new("i", 6)
                given = [Value("i", self._array(negative).address), Value("i", self._array(keys).address), *numbers]
                for at, value in enumerate(given):
                    self._computed("move_i", value, target=Value("i", first + at))
                target = self._new("i")
                self.emit("first_after", target.number, first)
                return target
            case ast.Call(func=ast.Name(id=name), args=arguments) if name in self.place.functions:
                return self._inserted(self.place.functions[name], arguments)
        raise NotTranslatableError(f"the call {ast.unparse(call)[:60]}")

    def _inserted(self, function: ast.FunctionDef, arguments: Sequence[ast.expr]) -> Value:
        """The value of a function that is one expression, over these arguments."""
        match function.body:
            case [ast.Return(value=ast.expr() as body)]:
                pass
            case _:
                raise NotTranslatableError(f"a call of {function.name}")
        own = {}
        for parameter, argument in zip(function.args.args, arguments, strict=True):
            named = self._names.get(argument.id) if isinstance(argument, ast.Name) else None
            own[parameter.arg] = named if named is not None else self._value_or_none(argument)
        before, self._names = self._names, {name: value for name, value in own.items() if value is not None}
        found = self.value(body)
        self._names = before
        return found

    def _value_or_none(self, argument: ast.expr) -> Value | None:
        return None if isinstance(argument, ast.Name) else self.value(argument)

    def _named(self, name: str) -> Value:
        found = self._names.get(name)
        if not isinstance(found, Value):
            raise NotTranslatableError(name)
        return found

    # --- arrays ----------------------------------------------------------------------------------------------------

    def _read(self, expression: ast.Subscript) -> Value:
        match expression:
            case ast.Subscript(value=ast.Name(id="ki"), slice=ast.Constant(value=int() as number)):
                return self.place.integers[number]
            case ast.Subscript(value=ast.Name(id="kf"), slice=ast.Constant(value=int() as number)):
                return self.place.floats[number]
            case ast.Subscript(value=ast.Attribute(value=ast.Name(id=name), attr="shape"), slice=ast.Constant(value=1)):
                return self._named(f"{name}.shape[1]")
        array, row, column = self._item(expression)
        reader = _READERS[array.items]
        target = self._new(READS[reader])
        if isinstance(column, Value):
            width = self.files.constant(array.width or 1).number if array.width_at is None else array.width_at
            self.emit(f"{reader}_at", target.number, array.address, row.number, width, column.number)
        elif array.width is None:
            assert array.width_at is not None
            place = self.files.constant(column).number
            self.emit(f"{reader}_at", target.number, array.address, row.number, array.width_at, place)
        elif self.by_rows and row.number == 0 and array.width == 1:
            self.emit(f"{reader}_in_row", target.number, array.address)
        else:
            self.emit(reader, target.number, array.address, row.number, array.width, column)
        return target

    def _item(self, expression: ast.Subscript) -> tuple[ArrayAt, Value, Value | int]:
        """The array, the row, and the column, which is a number where it is known."""
        array = self._array(expression.value)
        match expression.slice:
            case ast.Tuple(elts=[row, column]):
                known = self._known_number(column)
                return array, self.value(row), int(known) if known is not None else self.value(column)
            case index:
                return array, self.value(index), 0

    def _array(self, expression: ast.expr) -> ArrayAt:
        match expression:
            case ast.Name(id=name):
                found = self._names.get(name)
            case ast.Subscript(value=ast.Name(id="columns"), slice=ast.Constant(value=int() as number)):
                found = self.place.columns[number]
            case _:
                found = None
        if not isinstance(found, ArrayAt):
            raise NotTranslatableError(f"the array {ast.unparse(expression)}")
        return found


def _name_of(target: ast.expr) -> str:
    if not isinstance(target, ast.Name):
        raise NotTranslatableError(f"the target {ast.unparse(target)}")
    return target.id
