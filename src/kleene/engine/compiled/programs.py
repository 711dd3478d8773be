"""A query made into kernels, whatever its language: source is generated, and compiled, when it is first needed.

An engine is shared; what moves is in its progress. Code depends on which columns have NULLs, so that an engine may have
several kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from threading import RLock, Thread
from typing import Any, Generic, TypeVar

import numpy as np

from kleene.automaton.model import Automaton
from kleene.engine.budget import Budget
from kleene.engine.compiled import background
from kleene.engine.compiled.arrays.statuses import FIRST_ERROR
from kleene.engine.compiled.code import HEADER, check_source
from kleene.engine.compiled.columns import Layout
from kleene.engine.compiled.jit import Kernels, is_cached, load
from kleene.engine.compiled.loading import assembled, signatures_in
from kleene.engine.compiled.tiers import Tier, ask_for_loops, has_loops, not_by_tables, table_kernels


@dataclass(frozen=True, slots=True)
class GeneratedCode:
    """The source of a query's kernels, the types of their arguments, and the numbers that it uses."""

    source: str
    signatures: dict[str, str]
    layout: Layout

    @property
    def counts(self) -> tuple[Any | None, int]:
        """The registers of a run, if there are any, and how many measures are computed."""
        return getattr(self, "registers", None), len(getattr(self, "computed", ()))


def made_of(
    parts: Iterable[str], layout: Layout, results: Mapping[str, str], **types: str
) -> tuple[str, dict[str, str], Layout]:
    """What every generated module has; `results` are the types that its kernels give back."""
    written = list(parts)
    source = assembled(HEADER, [*layout.own_code(), *written])
    return source, signatures_in(source, results, {"columns": layout.signature(), **types}), layout


_MAKING = RLock()
"""Code is made by one thread at a time: others want the same as a rule, and Python's parser is not safe in threads."""
Generated = TypeVar("Generated", bound=GeneratedCode)


@dataclass(frozen=True, slots=True)
class Kernel(Generic[Generated]):
    generated: Generated
    functions: Kernels
    jit: bool
    is_by_tables: bool = False

    def run(self, name: str, *arguments: Any) -> Any:
        """What the function gives back; an error if it is the number of one."""
        with np.errstate(all="ignore"):
            found = self.functions[name](*arguments)
        if found is not None and found <= FIRST_ERROR:
            raise self.generated.layout.failure(found)
        return found


class Compiled(Generic[Generated]):
    """`jit` False runs the source as plain Python. `automaton` is the one that the source was made from, if any."""

    tier = Tier.MACHINE
    """How its kernels are run; whoever chooses the engine may set another."""

    def __init__(
        self, make: Callable[[frozenset[str]], Generated], jit: bool, automaton: Automaton | None = None
    ) -> None:
        self.jit, self.automaton = jit, automaton
        self._make = make
        self._generated: dict[frozenset[str], Generated] = {}
        self._kernels: dict[frozenset[str], Kernel[Generated]] = {}

    def generated(self, nullable: frozenset[str]) -> Generated:
        """The code for tables in which only these columns have NULLs."""
        with _MAKING:
            if nullable not in self._generated:
                generated = self._make(nullable)
                check_source(generated.source)
                self._generated[nullable] = generated
            return self._generated[nullable]

    def is_made(self, nullable: frozenset[str]) -> bool:
        """Whether the kernels for such tables are at hand in this engine."""
        return nullable in self._kernels

    def kernel(self, nullable: frozenset[str], budget: Budget | None = None) -> Kernel[Generated]:
        """The kernels for such tables. They may be others next time, and go on with the same state."""
        with _MAKING:
            kernel = self._kernels.get(nullable)
            if kernel is None or (kernel.is_by_tables and self.tier is Tier.AUTO and self._is_ready(kernel)):
                kernel = self._kernels[nullable] = self._made(self.generated(nullable), budget)
            return kernel

    def tier_text(self, nullable: frozenset[str]) -> str:
        """What would run now, and why."""
        generated = self.generated(nullable)
        told = generated.source, generated.signatures
        match self.tier:
            case _ if not self.jit:
                return "the query's code, as plain Python"
            case Tier.TABLES:
                return "loops that serve every query, as requested"
            case Tier.MACHINE:
                return "machine code made for this query, as requested"
        if generated.layout.called:
            return "machine code made for this query, since it calls functions of your own"
        if is_cached(*told):
            return "machine code made for this query, which is at hand"
        if not has_loops(generated.signatures):
            return "machine code made for this query at the first call: 'kleene warm' was not run on this machine"
        return "loops that serve every query, until machine code for this one was made in the background"

    def _is_ready(self, kernel: Kernel[Generated]) -> bool:
        return background.is_ready(kernel.generated.source, kernel.generated.signatures)

    def _made(self, generated: Generated, budget: Budget | None) -> Kernel[Generated]:
        by_tables = self._by_tables(generated)
        if by_tables is not None:
            return Kernel(generated, by_tables, self.jit, is_by_tables=True)
        return Kernel(generated, _loaded(generated, self.jit, budget), self.jit)

    def _by_tables(self, generated: Generated) -> Kernels | None:
        """The kernels by tables, where these are wanted, or can answer sooner than machine code."""
        if not self.jit or self.tier in (Tier.MACHINE, Tier.PLAIN) or generated.layout.called:
            return None
        told = generated.source, generated.signatures
        if self.tier is Tier.AUTO:
            if not background.is_on() or is_cached(*told):
                return None
            if not has_loops(generated.signatures):
                ask_for_loops(generated.signatures)
                return None
        found = table_kernels(*told, generated.layout, *generated.counts)
        if found is None and self.tier is Tier.TABLES:
            raise not_by_tables()
        if found is not None and self.tier is Tier.AUTO:
            background.ask_for(*told)
        return found


def _loaded(generated: GeneratedCode, jit: bool, budget: Budget | None) -> Kernels:
    """The functions of the code; an error if they are not made within the time that is left."""
    seconds = None if budget is None else budget.seconds_left
    if budget is None or seconds is None or not jit:
        return load(generated.source, generated.signatures, jit, generated.layout.called)
    # A compiler cannot be stopped. It goes on beside, and whoever asks next finds what it made.
    made: Future[Kernels] = Future()
    Thread(target=_make, args=(generated, made), daemon=True).start()
    try:
        return made.result(seconds)
    except FutureTimeoutError:
        raise budget.out_of_time(" while machine code was being made for the query") from None


def _make(generated: GeneratedCode, made: Future[Kernels]) -> None:
    try:
        made.set_result(load(generated.source, generated.signatures, True, generated.layout.called))
    except BaseException as error:  # it is raised where the result is asked for
        made.set_exception(error)
