"""What the code of runs and the code of sequences have in common: type tests, windows, predicates, negations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from kleene.analysis.analyzed import AnalyzedQuery, Conjunct, NegativeComponent
from kleene.automaton.model import FormulaClass, Predicate
from kleene.engine.compiled.code import Code
from kleene.engine.compiled.columns import Layout
from kleene.engine.compiled.failures import NotExpressibleError
from kleene.engine.compiled.kernel_window import KernelWindow
from kleene.engine.compiled.negation_index import REACH
from kleene.engine.compiled.sase_readers import OfMatch, OfRun, OneEvent, Rows
from kleene.ir import expr as ir
from kleene.schema import BOOLEAN, STRING

MOST_BITS = 62
INDEX = "negative, entry_keys, directory, buckets"
"""The arguments that are a `NegationIndex`."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Where the events lie that a negation looks at: their key, the rows around them, and what else must agree."""

    place: int  # among the negations of the index
    key: str
    first_row: str
    last_row: str
    ties: tuple[str, ...] = ()
    access: str = "index"


@dataclass(slots=True)
class SaseCode:
    query: AnalyzedQuery
    layout: Layout

    def check_bits(self, of_a_component: int) -> None:
        components, negations = len(self.query.components), len(self.query.negations)
        if of_a_component * components + negations > MOST_BITS:
            raise NotExpressibleError(f"a pattern of {components} components and {negations} negations")

    # --- what depends on one event alone -------------------------------------------------------------------------

    def write_bit(
        self, code: Code, bit: int, types: tuple[str, ...], predicates: Sequence[Predicate], reader: OneEvent
    ) -> tuple[Conjunct, ...]:
        """Sets the bit for an event of the types that satisfies what it alone decides; returns what is left to decide.

        A predicate whose machine code may give up is left for where it is needed, with all that stand behind it.
        """
        type_test = self.type_test(types)
        parts = [] if type_test is None else [code.truth(type_test, reader)]
        left: list[Conjunct] = []
        may_give_up = False
        for predicate in predicates:
            mark, conjunct = len(code.lines), predicate.conjunct
            if may_give_up or predicate.formula_class is not FormulaClass.SINGLE_EVENT:
                left.append(conjunct)
                continue
            truth = code.truth(conjunct.expression, reader)
            if truth.bad is None:
                parts.append(truth)
            else:
                del code.lines[mark:]
                may_give_up = True
                left.append(conjunct)
        test = " and ".join(part.true for part in parts) or "True"
        with code.block(f"if {test}:"):
            code.line(f"found |= {1 << bit}")
        return tuple(left)

    def type_test(self, types: tuple[str, ...]) -> ir.Expr | None:
        schema = self.query.schema
        assert schema is not None
        if schema.type_column is None:
            return None
        event_type = ir.Attribute(None, schema.type_column, type=STRING)
        return ir.In(event_type, tuple(ir.Literal(text, STRING, type=STRING) for text in types), type=BOOLEAN)

    # --- windows -------------------------------------------------------------------------------------------------

    @property
    def window(self) -> KernelWindow:
        return KernelWindow.of(self.query)

    def window_function(self) -> str:
        apart = "positions[row] - positions[start]", "times[row] - times[start]"
        return self.window.function(self.layout, "times, positions", *apart)

    def _after_opening(self, time: str, last_row: str) -> str:
        """Whether a time is within the window before the last event; floats are compared as the meaning says."""
        size, last = self.window.code(self.layout), f"times[{last_row}]"
        return f"{time} > {last} - {size}" if self.window.is_float else f"{last} - {time} < {size}"

    def _before_closing(self, time: str, first_row: str) -> str:
        size, first = self.window.code(self.layout), f"times[{first_row}]"
        return f"{time} < {first} + {size}" if self.window.is_float else f"{time} - {first} < {size}"

    # --- predicates ----------------------------------------------------------------------------------------------

    @contextmanager
    def each_choice(self, code: Code, walked: list[tuple[str, int]], reader: OfRun | OfMatch) -> Iterator[None]:
        with ExitStack() as stack:
            for variable, first in walked:
                index = code.name()
                rows = reader.walked[variable]
                stack.enter_context(code.block(f"for {index} in range({first}, {rows.count}):"))
                reader.index[variable] = index
            yield

    # --- negations -----------------------------------------------------------------------------------------------

    def write_absence(
        self, code: Code, negation: NegativeComponent, reader: OfMatch, gap: Gap, open_: Sequence[Conjunct]
    ) -> None:
        """Returns 0 if an event in the gap is one that the negation forbids.

        The index has, for each negation, its events by parts of time, in each by key, and then in order.
        """
        low, high, condition, parts = self._interval(negation, reader, gap)
        at = code.name()
        if gap.access == "scan_all":
            everything = f"range(directory[{gap.place}, 0], directory[{gap.place}, directory.shape[1] - 1])"
            with code.block(f"for {at} in {everything}:"):
                code.line(f"row = negative[{at}]")
                inside = f"entry_keys[{at}] == {gap.key} and row > {low} and row < {high}"
                self._write_forbidden(code, negation.name, reader, at, [inside, condition, *gap.ties], open_)
            return
        part, last = code.name(), code.name()
        code.line(f"{part} = {parts[0]}")
        code.line(f"{last} = {parts[1]}")
        with code.block(f"while {part} <= {last}:"):
            end = f"directory[{gap.place}, {part} + 1]"
            code.line(
                f"{at} = first_after(negative, entry_keys, directory[{gap.place}, {part}], {end}, {gap.key}, {low})"
            )
            with code.block(f"while {at} < {end} and entry_keys[{at}] == {gap.key} and negative[{at}] < {high}:"):
                code.line(f"row = negative[{at}]")
                self._write_forbidden(code, negation.name, reader, at, [condition, *gap.ties], open_)
                code.line(f"{at} += 1")
            code.line(f"{part} += 1")

    def _interval(
        self, negation: NegativeComponent, reader: OfMatch, gap: Gap
    ) -> tuple[str, str, str, tuple[str, str]]:
        """The rows before and after the gap, what else must hold of a row in it, and the parts of time it lies in."""
        components = self.query.components
        if negation.gap == 0:
            opening = f"max(buckets[{gap.first_row}] - {REACH}, 0)"
            within = self._after_opening("times[row]", gap.last_row)
            return "-1", gap.first_row, within, (opening, f"buckets[{gap.first_row}]")
        if negation.gap == len(components):
            closing = f"min(buckets[{gap.last_row}] + {REACH}, directory.shape[1] - 2)"
            within = self._before_closing("times[row]", gap.first_row)
            return gap.last_row, "len(buckets)", within, (f"buckets[{gap.last_row}]", closing)
        before = reader.walked[components[negation.gap - 1].name]
        low, high = before.row(f"{before.count} - 1"), reader.walked[components[negation.gap].name].row("0")
        return low, high, "True", (f"buckets[{low}]", f"buckets[{high}]")

    def _write_forbidden(
        self, code: Code, name: str, reader: OfMatch, at: str, conditions: Sequence[str], open_: Sequence[Conjunct]
    ) -> None:
        code.line(f"holds = {' and '.join(conditions)}")
        reader.walked[name] = Rows("negative", at, "1")
        for conjunct in open_:
            with code.block("if holds:"):
                choices = [item for item in conjunct.indexed if item[0] != name]
                with self.each_choice(code, choices, reader):
                    truth = code.truth(conjunct.expression, reader)
                    code.return_if_bad(truth, conjunct.expression, "holds and ")
                    with code.block(f"if not {truth.true}:"):
                        code.line("holds = False")
            reader.index.clear()
        code.return_if("holds")
