"""Functions and aggregates of the user's own in generated code.

In machine code, a function that numba compiles is called through a small function of the module, which says whether
the value is known (0), NULL (1), or cannot be computed (2). In plain Python the module calls an object of this file,
which hands the values to the interpreter. An aggregate's state is numbers in either, which runs keep in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kleene.engine.compiled.columns import Dictionary, Layout, kind_of
from kleene.engine.compiled.failures import NotExpressibleError
from kleene.engine.compiled.own_machine import SAFE_INTEGER, NotCompiledError, dispatcher_of, result_of
from kleene.errors import ExecutionError, printable, shown
from kleene.ir import expr as ir
from kleene.ir.calls import finished, started, stepped
from kleene.ir.evaluate import evaluate
from kleene.ir.own import OwnAggregate
from kleene.schema import BOOLEAN, FLOAT, INTEGER, Type

KNOWN, NULL, BAD = 0, 1, 2
MOST_STATES = 8
EXACT_IN_FLOAT = 2**53
_AS = {"f": "float({})", "i": "int({})", "b": "(1 if {} else 0)"}
_NOTHING = {"f": "0.0", "i": "0", "b": "0"}
_NUMBERS: dict[Type | None, str] = {FLOAT: "f", INTEGER: "i", BOOLEAN: "b"}


# --- plain Python ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value that a call is given: a node of its expression. A state is that of an aggregate of the user's own."""

    node: ir.Expr
    kind: str
    state: State | None = None

    def value(self, given: Sequence[Any], strings: Sequence[str]) -> Any:
        *values, is_null = given
        if is_null:
            return None
        if self.state is not None:
            assert isinstance(self.node, ir.Aggregate)
            assert self.node.own is not None
            return finished(self.node.own, self.state.value(values), self.node.type)
        (value,) = values
        match self.kind:
            case "s":
                return strings[int(value)]
            case "b":
                return bool(value)
        return float(value) if self.kind == "f" else int(value)

    @property
    def width(self) -> int:
        return (1 if self.state is None else len(self.state.kinds)) + 1


@dataclass(frozen=True, slots=True)
class _Leaves:
    """The values of a call's leaves."""

    values: dict[ir.Expr, Any]

    def value(self, expression: ir.Expr) -> Any:
        return self.values[expression]


@dataclass(frozen=True, slots=True, eq=False)
class InterpretedCall:
    """An expression over several events, computed by the interpreter from values that generated code has read."""

    expression: ir.Expr
    leaves: tuple[Leaf, ...]
    failures: dict[ir.Expr, ExecutionError]

    def __call__(self, columns: tuple[Any, ...], is_bad: bool, *given: Any) -> tuple[Any, int]:
        kind = kind_of(self.expression.type)
        nothing: Any = 0.0 if kind == "f" else 0
        if is_bad:
            return nothing, BAD
        dictionary: Dictionary = columns[-1]
        values, place = dict[ir.Expr, Any](), 0
        try:
            for leaf in self.leaves:
                values[leaf.node] = leaf.value(given[place : place + leaf.width], dictionary.strings)
                place += leaf.width
            value = evaluate(self.expression, _Leaves(values))
        except ExecutionError as error:
            self.failures.setdefault(self.expression, error)
            return nothing, BAD
        if value is None:
            return nothing, NULL
        if kind == "s":
            return dictionary.code(value), KNOWN
        is_wide = isinstance(value, int) and not -(2**63) <= value < 2**63
        return (nothing, BAD) if is_wide else (int(value) if kind == "b" else value, KNOWN)


@dataclass(frozen=True, slots=True, eq=False)
class PlainStep:
    """A step of an aggregate, in Python."""

    aggregate: ir.Aggregate
    state: State
    kind: str
    failures: dict[ir.Expr, ExecutionError]

    def __call__(self, columns: tuple[Any, ...], *given: Any) -> tuple[Any, ...]:
        *state, value = given
        own, argument = self.aggregate.own, self.aggregate.argument
        assert own is not None
        plain = Leaf(argument, self.kind).value((value, False), columns[-1].strings)
        try:
            return (*self.state.numbers(own, stepped(own, self.state.value(state), plain, argument.type)), KNOWN)
        except ExecutionError as error:
            self.failures.setdefault(self.aggregate, error)
            return (*self.state.start, BAD)


# --- the states of aggregates ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class State:
    """What an aggregate keeps: a number for each kind, as a tuple or, if there is just one, alone."""

    kinds: str
    start: tuple[int | float, ...]
    is_tuple: bool

    def value(self, numbers: Sequence[Any]) -> Any:
        """The state as the user's functions know it."""
        plain = tuple(float(one) if kind == "f" else int(one) for one, kind in zip(numbers, self.kinds, strict=True))
        return plain if self.is_tuple else plain[0]

    def numbers(self, own: OwnAggregate, value: Any) -> tuple[int | float, ...]:
        """The state as numbers; an error if it is not of the kinds that it was of before."""
        parts = value if self.is_tuple else (value,)
        is_tuple = isinstance(parts, tuple) and len(parts) == len(self.kinds)
        if not is_tuple or not all(map(_fits, parts, self.kinds)):
            raise ExecutionError(
                f"the state of the aggregate '{printable(own.name)}' became {shown(value)}, but it began as "
                f"{shown(own.started())}",
                hint="Let all states be of the same numbers, such as 0.0 where floats follow.",
            )
        return tuple(float(one) if kind == "f" else int(one) for one, kind in zip(parts, self.kinds, strict=True))

    @property
    def signature(self) -> str:
        return f"({self.kinds})" if self.is_tuple else self.kinds

    def code(self, names: Sequence[str]) -> str:
        return f"({', '.join(names)},)" if self.is_tuple else names[0]


def _fits(value: Any, kind: str) -> bool:
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    if kind == "f":
        return isinstance(value, float) or abs(value) <= EXACT_IN_FLOAT
    return isinstance(value, int) and -(2**63) <= value < 2**63


def state_of(aggregate: ir.Aggregate, plain: bool) -> State:
    """The state of the aggregate over values of its argument; NotExpressibleError if it is not made of numbers."""
    own = aggregate.own
    assert own is not None
    begun = started(own)
    parts = begun if isinstance(begun, tuple) else (begun,)
    if not 1 <= len(parts) <= MOST_STATES or any(type(part) not in (int, float) for part in parts):
        raise NotExpressibleError(
            f"the aggregate '{printable(own.name)}', whose state is {shown(begun)} and not one to {MOST_STATES} numbers"
        )
    kinds = "".join("f" if isinstance(part, float) else "i" for part in parts)
    state = State(kinds, parts, isinstance(begun, tuple))
    later = _probed(own, state, aggregate) if plain else _inferred(own, state, aggregate)
    numbers = tuple(float(part) if kind == "f" else part for part, kind in zip(parts, later, strict=True))
    return replace(state, kinds=later, start=numbers)


def _probed(own: OwnAggregate, state: State, aggregate: ir.Aggregate) -> str:
    """The kinds of the state after a step with some value: what begins as 0 may go on as 0.5."""
    sample = {"f": 1.5, "i": 1}.get(_NUMBERS.get(aggregate.argument.type, ""))
    try:
        given = own.step(own.started(), sample)
    except Exception:
        return state.kinds
    parts = given if isinstance(given, tuple) else (given,)
    if isinstance(given, tuple) is not state.is_tuple or len(parts) != len(state.kinds):
        return state.kinds
    return "".join("f" if isinstance(part, float) else kind for part, kind in zip(parts, state.kinds, strict=True))


def _inferred(own: OwnAggregate, state: State, aggregate: ir.Aggregate) -> str:
    """The kinds of the state in machine code; whole numbers that a step makes floats are floats from the start."""
    what = f"the aggregate '{printable(own.name)}'"
    kind = _NUMBERS.get(aggregate.argument.type)
    if kind is None:
        raise NotExpressibleError(f"{what} over values of type {aggregate.argument.type}")
    for _ in range(2):
        found = _machine_result(own.step, (state.signature, kind), what).strip("()")
        if found == state.kinds:
            return found
        if len(found) != len(state.kinds) or not set(found) <= {"f", "i"}:
            break
        state = replace(state, kinds=_joined(found, state.kinds))
    raise NotExpressibleError(f"{what}, whose states are not of the same numbers")


def _joined(one: str, other: str) -> str:
    return "".join("f" if "f" in pair else "i" for pair in zip(one, other, strict=True))


def _machine_result(function: Callable[..., Any], arguments: tuple[str, ...], what: str) -> str:
    try:
        return result_of(function, arguments)
    except NotCompiledError as reason:
        raise NotExpressibleError(f"{what}: {reason}") from None


# --- machine code ----------------------------------------------------------------------------------------------------


def machine_call(call: ir.PythonCall, layout: Layout, may_be_null: Sequence[bool]) -> str:
    """The name of a function of the module that makes the call; each argument that may be NULL has a flag behind it."""
    what = f"a call of the function '{printable(call.name)}' over several events"
    kinds = [_NUMBERS.get(argument.type) for argument in call.arguments]
    wanted = _NUMBERS.get(call.type)
    if wanted is None or None in kinds or sum(may_be_null) > 2:
        raise NotExpressibleError(f"{what}, of whose values not all are numbers")
    own = [str(kind) for kind in kinds]
    if _result_code(_machine_result(call.function, tuple(own), what), wanted, "") == [_returned(wanted, BAD)]:
        raise NotExpressibleError(f"{what}, which gives values of another type than it says")

    def written(name: str, called: str) -> str:
        names = [f"a{number}" for number in range(len(own))]
        head = [part for number, item in enumerate(names) for part in (item, f"n{number}")[: 1 + may_be_null[number]]]
        lines = [f"def {name}({', '.join(head)}):", "    try:"]
        for missing in _subsets([number for number, may_be in enumerate(may_be_null) if may_be]):
            test = " and ".join(f"n{number}" for number in missing) or "True"
            body = _call_code(call.function, called, own, missing, wanted)
            lines += [f"        if {test}:", *(f"            {line}" for line in body)]
        lines += [f"        {_returned(wanted, BAD)}", "    except Exception:", f"        {_returned(wanted, BAD)}"]
        return "\n".join(lines)

    return layout.function(f"call {own} {may_be_null} {wanted}", call.function, written, dispatcher_of(call.function))


def _call_code(
    function: Callable[..., Any], called: str, kinds: Sequence[str], missing: Sequence[int], wanted: str
) -> list[str]:
    """Lines that call the function with some arguments missing, and return what it gives."""
    names = [f"a{number}" for number in range(len(kinds))]
    passed = ["None" if n in missing else _as_argument(item, kinds[n]) for n, item in enumerate(names)]
    try:
        result = result_of(function, tuple("n" if n in missing else kind for n, kind in enumerate(kinds)))
    except NotCompiledError:  # Python says what is wrong with a NULL
        return [_returned(wanted, BAD)]
    whole = [item for n, item in enumerate(names) if kinds[n] == "i" and n not in missing]
    lines = [f"if {_beyond(whole)}:", f"    {_returned(wanted, BAD)}"] if whole else []
    return lines + _result_code(result, wanted, f"{called}({', '.join(passed)})")


def _beyond(whole: Sequence[str]) -> str:
    """Whether one of the whole numbers is so large that sums of it may leave 64 bits."""
    return " or ".join(f"{item} >= {SAFE_INTEGER} or {item} <= -{SAFE_INTEGER}" for item in whole)


def _as_argument(name: str, kind: str) -> str:
    return f"({name} != 0)" if kind == "b" else name


def _subsets(numbers: Sequence[int]) -> list[tuple[int, ...]]:
    """All sets of the arguments, the largest first, so that the first whose members are all NULL is the right one."""
    found: list[tuple[int, ...]] = [()]
    for number in numbers:
        found += [(*known, number) for known in found]
    return sorted(found, key=len, reverse=True)


def _returned(kind: str, status: int, code: str | None = None) -> str:
    return f"return {_NOTHING[kind] if code is None else code}, {status}"


def _result_code(result: str, wanted: str, call: str) -> list[str]:
    """Lines that return what the call gives, as a value of the kind that is wanted."""
    kind = result.removeprefix("?")
    if kind == "n":
        return [f"r = {call}", _returned(wanted, NULL)]
    if not (kind == wanted or (kind == "i" and wanted == "f")):
        return [_returned(wanted, BAD)]
    lines = [f"r = {call}"]
    if result.startswith("?"):
        lines += ["if r is None:", f"    {_returned(wanted, NULL)}"]
    # What may be None is still that to numba behind the test; only an operator takes the number out of it.
    number = "r" if not result.startswith("?") or kind == "b" else "(r * 1.0)" if kind == "f" else "(r * 1)"
    value = _AS[wanted].format(number)
    if kind == "i":
        lines += [f"if {_beyond(['r'])}:", f"    {_returned(wanted, BAD)}"]
    return [*lines, _returned(wanted, KNOWN, value)]


def machine_step(aggregate: ir.Aggregate, state: State, layout: Layout) -> str:
    """The name of a function of the module: the numbers of a state and a value in, the next ones and a status out."""
    own, kind = aggregate.own, _NUMBERS[aggregate.argument.type]
    assert own is not None
    step = own.step

    def written(name: str, called: str) -> str:
        before, after = ([f"{letter}{n}" for n in range(len(state.kinds))] for letter in "sr")
        nothing = ", ".join([*(_NOTHING[one] for one in state.kinds), str(BAD)])
        results = [_AS[one].format(number) for one, number in zip(state.kinds, after, strict=True)]
        known = [*zip(before, state.kinds, strict=True), ("x", kind), *zip(after, state.kinds, strict=True)]
        whole = [number for number, one in known if one == "i"]
        return "\n".join(
            [
                f"def {name}({', '.join(before)}, x):",
                "    try:",
                f"        {state.code(after)} = {called}({state.code(before)}, {_as_argument('x', kind)})",
                *([f"        if {_beyond(whole)}:", f"            return {nothing}"] if whole else []),
                f"        return {', '.join([*results, str(KNOWN)])}",
                "    except Exception:",
                f"        return {nothing}",
            ]
        )

    return layout.function(f"step {state.signature} {kind}", step, written, dispatcher_of(step))


def machine_finish(aggregate: ir.Aggregate, state: State, layout: Layout) -> str:
    """The name of a function of the module that gives the aggregate's value of a state."""
    own, wanted = aggregate.own, _NUMBERS.get(aggregate.type)
    assert own is not None
    what = f"the aggregate '{printable(own.name)}'"
    if wanted is None:
        raise NotExpressibleError(f"{what}, since no annotation of its functions says that it is a number")
    finish = own.finish if own.finish is not None else _unchanged
    result = _machine_result(finish, (state.signature,), what)

    def written(name: str, called: str) -> str:
        numbers = [f"s{number}" for number in range(len(state.kinds))]
        body = _result_code(result, wanted, f"{called}({state.code(numbers)})")
        lines = [f"def {name}({', '.join(numbers)}):", "    try:", *(f"        {line}" for line in body)]
        return "\n".join([*lines, "    except Exception:", f"        {_returned(wanted, BAD)}"])

    if _result_code(result, wanted, "") == [_returned(wanted, BAD)]:
        raise NotExpressibleError(f"{what}, which gives values of another type than it says")
    return layout.function(f"finish {state.signature} {wanted}", finish, written, dispatcher_of(finish))


def _unchanged(state: Any) -> Any:
    return state
