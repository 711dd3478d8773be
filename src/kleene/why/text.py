"""An answer as text for a terminal: the counts that people need first, then near misses, then runs step by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kleene.errors import listed, printable
from kleene.why.model import Ending, Kind, NearMiss, PredicateCount, Run, Step, Try
from kleene.why.words import bound_text, check_text, event_text, key_text, predicate_text, types_text

if TYPE_CHECKING:
    from kleene.why.answer import Why

_MOST_MISSES, _MOST_RUNS, _MOST_STEPS = 10, 20, 40
_MOVES = {"begin": "", "take": "later events", "complete": "all events", "forbid": "negation", "row": ""}


def counted(count: int, one: str, many: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def answer_text(why: Why) -> str:
    if why.is_combination:
        return "\n".join([why.query, "", *_combination_lines(why)])
    blocks = [
        [why.query],
        [_headline(why), *(f"note: {note}" for note in why.notes)],
        _predicate_lines(why.predicates),
        _run_lines(why),
        _miss_lines(why.misses),
        _step_lines(why),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _headline(why: Why) -> str:
    partitions = f" in {counted(why.partitions, 'partition')}" if why.partitions != 1 else ""
    return (
        f"{counted(len(why.found), 'match', 'matches')} among {counted(why.events, 'event')}{partitions}; "
        f"{counted(why.runs_followed, 'run')} followed"
    )


# --- counts ---


def _predicate_lines(counts: Sequence[PredicateCount]) -> list[str]:
    if not counts:
        return []
    rows = [("events that passed", "", "passed", "of", "stopped runs")]
    before = None
    for count in counts:
        name = "" if count.variable == before else printable(count.variable)
        before = count.variable
        what = types_text(count.types) if count.predicate is None else predicate_text(count.predicate)
        about = _MOVES.get(count.move, count.move)
        if about and (count.predicate is not None or count.move == "forbid"):
            what += f"  [{about}]"
        stopped = "" if count.predicate is None else f"{count.stopped:,}"
        rows.append((f"  {name}", what, f"{count.passed:,}", f"{count.events:,}", stopped))
    return _columns(rows, right=(2, 3, 4))


def _columns(rows: Sequence[tuple[str, ...]], right: tuple[int, ...]) -> list[str]:
    """The cells under each other; the first line heads them."""
    first = max(len(cells[0]) for cells in rows[1:])
    widths = [first, *(max(len(cells[number]) for cells in rows) for number in range(1, len(rows[0])))]
    lines = [_line(cells, widths, right) for cells in rows[1:]]
    heading = rows[0][0].ljust(first + 2 + widths[1])
    rest = [cell.rjust(width) for cell, width in zip(rows[0][2:], widths[2:], strict=True)]
    return ["  ".join([heading, *rest]).rstrip(), *lines]


def _line(cells: Sequence[str], widths: Sequence[int], right: tuple[int, ...]) -> str:
    padded = [
        cell.rjust(width) if number in right else cell.ljust(width)
        for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()


def _run_lines(why: Why) -> list[str]:
    lines: list[str] = []
    if why.reached:
        reached = ", ".join(f"{printable(count.name)} {count.runs:,}" for count in why.reached)
        lines.append(f"runs that reached a state: {reached}")
    ended = [count for count in why.ended if count.name != Kind.WENT_ON]
    if ended:
        lines.append("runs ended by: " + ", ".join(f"{count.name} {count.runs:,}" for count in ended))
    stopped = max(why.predicates, key=lambda count: count.stopped, default=None)
    if stopped is not None and stopped.predicate is not None and stopped.stopped:
        text = predicate_text(stopped.predicate)
        lines.append(f"most runs were stopped by {text}: {counted(stopped.stopped, 'run')}")
    return lines


# --- near misses ---


def _miss_lines(misses: Sequence[NearMiss]) -> list[str]:
    if not misses:
        return []
    lines = ["near misses"]
    for miss in misses[:_MOST_MISSES]:
        lines += [f"  {_run_name(miss.run, miss.key)}: {bound_text(miss.bound)}", f"    {miss_text(miss)}"]
    if len(misses) > _MOST_MISSES:
        lines.append(f"  and {len(misses) - _MOST_MISSES:,} more, in near_misses")
    return lines


def _run_name(number: int, key: Sequence[tuple[str, str]]) -> str:
    name = f"run {number:,}" if number else "no run"
    return f"{name} ({key_text(key)})" if key else name


def miss_text(miss: NearMiss) -> str:
    variable = printable(miss.variable or "")
    event = "" if miss.event is None else event_text(miss.event)
    by = "" if miss.by is None else event_text(miss.by)
    end = "; else a match" if miss.would_match else ""
    match miss.kind:
        case Kind.WINDOW:
            return f"{event} would be {variable}, but the window has passed{end}"
        case Kind.CONTIGUITY:
            return f"{event} would be {variable}, but {by} is in between{end}"
        case Kind.NEGATION:
            return f"{by} is {variable}, which must not be there{end}"
        case Kind.HAVING:
            assert miss.check is not None
            return f"HAVING: {check_text(miss.check)}{end}"
    assert miss.check is not None
    tried = f"{event}, for {variable}" if event else f"{variable} is not complete"
    return f"{tried}: {check_text(miss.check)}{end}"


# --- steps ---


def _step_lines(why: Why) -> list[str]:
    if not why.has_runs:
        return []
    if not why.runs:
        return ["no run has to do with the events that were asked for"]
    lines = ["runs, step by step"]
    for run in why.runs[:_MOST_RUNS]:
        lines += [f"  {line}" for line in _told(run)]
    if len(why.runs) > _MOST_RUNS:
        lines.append(f"  and {len(why.runs) - _MOST_RUNS:,} more, in steps")
    return lines


def _told(run: Run) -> Iterator[str]:
    parent = f", from run {run.parent:,}" if run.parent else ""
    name = _run_name(run.number, run.key)
    yield f"{name}{parent}: {bound_text(run.bound)}" if run.bound else name
    lines = [line for line in _steps_in_words(run.steps) if line]
    yield from (f"  {line}" for line in lines[:_MOST_STEPS])
    if len(lines) > _MOST_STEPS:
        yield f"  and {len(lines) - _MOST_STEPS:,} more steps, in steps"
    yield from (f"  {ending_text(ending)}" for ending in run.endings)


def _steps_in_words(steps: Sequence[Step]) -> Iterator[str]:
    """The steps; events that are of no type the run could use are told together."""
    passed: list[Step] = []
    for step in [*steps, None]:
        if step is not None and step.tries and all(one.wanted for one in step.tries):
            passed.append(step)
            continue
        if passed:
            yield _passed_over(passed)
            passed = []
        if step is not None:
            yield from (f"{event_text(step.event)} {_try_text(one)}" for one in step.tries if not one.wanted)


def _passed_over(steps: Sequence[Step]) -> str:
    wanted = listed(dict.fromkeys(type_ for step in steps for one in step.tries for type_ in one.wanted))
    if len(steps) == 1:
        return f"{event_text(steps[0].event)} is not of type {wanted}"
    return f"{len(steps):,} events, row {steps[0].event.row:,} to row {steps[-1].event.row:,}, are not of type {wanted}"


def _try_text(one: Try) -> str:
    variable = printable(one.variable)
    if one.holds:
        verb = {"begin": "is", "take": "is another", "row": "is"}[one.move]
        because = f": {'; '.join(map(check_text, one.checks))}" if one.checks else ""
        return f"{verb} {variable}{because}"
    return f"is not {variable}: {'; '.join(map(check_text, one.failed))}"


def ending_text(ending: Ending) -> str:
    by = "" if ending.by is None else event_text(ending.by)
    checks = "; ".join(map(check_text, ending.checks))
    variable = printable(ending.variable or "")
    match ending.kind:
        case Kind.MATCH:
            return f"→ match {ending.match:,}"
        case Kind.LOST:
            return f"✗ overlaps match {ending.match:,}, which was given out instead"
        case Kind.WENT_ON:
            return "→ went on in other runs"
        case Kind.WINDOW:
            return f"✗ the window has passed with {by}"
        case Kind.CONTIGUITY:
            return f"✗ {by} may not be passed over"
        case Kind.NEXT_MATCH:
            return f"✗ {by} fits, and skip_till_next_match may not pass over it"
        case Kind.NEGATION:
            return f"✗ forbidden: {by} is {variable}" + (f": {checks}" if checks else "")
        case Kind.HAVING:
            return f"✗ HAVING: {checks}"
        case Kind.END:
            return "✗ no more events"
        case Kind.NOT_BEGUN:
            return "✗ begins no run"
        case Kind.NOT_SEEN:
            return f"✗ no run was waiting when {by} came"
        case Kind.TYPE:
            return f"✗ {by} is not of a type of {variable}"
        case Kind.KEY:
            return f"✗ {by} is of another partition, or of none"
        case Kind.ORDER:
            return f"✗ {by} does not come after the event before it"
        case Kind.SKIPPED:
            return f"✗ skipped: AFTER MATCH goes on behind it, after match {ending.match:,}"
        case Kind.LENGTH:
            return f"✗ too long: {by} is beyond the bound"
        case Kind.ANCHOR:
            return "✗ the pattern begins or ends with the partition, and this is not there"
    return f"✗ {by}, for {variable}: {checks}" if by and variable else f"✗ {by}: {checks}" if by else f"✗ {checks}"


def _combination_lines(why: Why) -> Iterator[str]:
    for run in why.runs:
        yield f"{bound_text(run.bound)} is {'a match' if why.found else 'not a match'}"
        yield from (f"  {line}" for line in _steps_in_words(run.steps) if line)
        yield from (f"  {ending_text(ending)}" for ending in run.endings)
    yield from (f"note: {note}" for note in why.notes)
