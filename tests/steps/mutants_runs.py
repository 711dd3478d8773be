"""Wrong readings of negation, time, and what happens after a match."""

from collections.abc import Callable

from mutants_places import MUTANTS, mutant
from steps_brute import Beginning, Chooser, Completed, Rules
from steps_conditions import Bindings, Moment
from steps_model import STRICT, Condition, Negation
from steps_places import FINAL, IGNORE, Edge, Place, Places, Position

# ---------------------------------------------------------------- negation


@mutant
class NegationClosesAtIgnore(Beginning):
    """an open negation closes when an event is ignored."""

    def negated(self, moment: Moment) -> bool:
        last = moment.bindings[-1][1]
        return self.events.index(moment.event) == self.events.index(last) + 1 and super().negated(moment)


@mutant
class NegationFromTheLastEvent(Beginning):
    """a negation after a repetition counts from its last event only."""

    def negated(self, moment: Moment) -> bool:
        name = moment.bindings[-1][0]
        position = next(each for each in self.places.all_positions() if self.places.step(each).name == name)
        enough = len(moment.bound(name)) >= self.places.quantifier(position).low
        return enough and super().negated(moment)


@mutant
class NegationOnlyWhereNoLoopGoesOn(Beginning):
    """a negation that is hit ends only the runs that lead past it."""

    def negated(self, moment: Moment) -> bool:
        name = moment.bindings[-1][0]
        position = next(each for each in self.places.all_positions() if self.places.step(each).name == name)
        return not self.places.quantifier(position).repeated and super().negated(moment)


@mutant
class NegationNotPastOptional(Places):
    """open negations are not looked for past an optional step or the end of a group."""

    def open_negations(self, position: Position) -> list[Condition]:
        found: list[Condition] = []
        for part in self.sequence(position[:-1])[position[-1][0] + 1 :]:
            if not isinstance(part, Negation):
                break
            if part.contiguity != STRICT:
                found.append(part.condition)
        return found


@mutant
class NegationCountsInTheNextStep(Places):
    """a negation goes on counting after the optional step behind it was taken."""

    def open_negations(self, position: Position) -> list[Condition]:
        found = super().open_negations(position)
        if len(position) == 1 and self.quantifier(position).optional and position[0][0] > 0:
            before = self.pattern.parts[position[0][0] - 1]
            if isinstance(before, Negation) and before.contiguity != STRICT:
                found.append(before.condition)
        return found


@mutant
class StopEndsOneWay(Beginning):
    """a not_next that is hit ends only the way past it."""

    def moves(self, place: Place, moment: Moment) -> tuple[list[tuple[Edge, Place]], bool]:
        return super().moves(place, moment)[0], False


@mutant
class HitDropsTheMatch(Beginning):
    """a match that the hitting event completes is not given out."""

    def take(self, edge: Edge, origin: Place, moment: Moment, index: int, hit: bool) -> None:
        if not hit:
            super().take(edge, origin, moment, index, hit)


@mutant
class NotNextLastIsFinal(Places):
    """not_next in last place does not need a next event."""

    def reaches(self, place: Place, kind: str, moment: Moment | None) -> bool:
        last_not_next = kind == FINAL and any(
            edge.kind == IGNORE and edge.target.kind == FINAL for edge in self.edges(place)
        )
        return last_not_next or super().reaches(place, kind, moment)


@mutant
class NegationsNeedTheLastOnly(Places):
    """of several negations in one place only the last counts."""

    def open_negations(self, position: Position) -> list[Condition]:
        return super().open_negations(position)[-1:]


# ---------------------------------------------------------------- time


@mutant
class WindowsIncludeTheirEnd(Places):
    """windows are closed: <= in place of <."""

    def is_over(self, elapsed: int, bound: int) -> bool:
        return elapsed > bound


@mutant
class SinceForFurtherEvents(Places):
    """since_previous counts for every event of a loop."""

    def bound(self, position: Position) -> int | None:
        step = self.step(position)
        return step.since if step.since is not None else super().bound(position)


@mutant
class GapForTheFirstEvent(Places):
    """gap counts before the first event."""

    def bound(self, position: Position) -> int | None:
        step = self.step(position)
        return step.quantifier.gap if step.since is None else super().bound(position)


@mutant
class LoopsTimeOutByGap(Places):
    """a cell with ways out times out by gap."""

    def time_bound(self, place: Place) -> int | None:
        return self.bound(place.position) if place.kind == "cell" else super().time_bound(place)


@mutant
class PendingNeedsAnEvent(Beginning):
    """not_followed_by in last place is not noticed at the end of the input."""

    def ends_by_time(self, place: Place, bindings: Bindings, index: int) -> bool:
        return index < len(self.events) and super().ends_by_time(place, bindings, index)


# ---------------------------------------------------------------- after a match


@mutant
class NobodyWaits(Chooser):
    """a match does not wait for runs that began before it."""

    def must_wait(self, match: Completed, instant: int) -> bool:
        return False


def _kept(name: str, rule: Callable[[Chooser, Completed, int], int]) -> None:
    class Kept(Chooser):
        def kept_from(self, match: Completed) -> int:
            return rule(self, match, super().kept_from(match))

    MUTANTS[name] = Rules(chooser=Kept)


_kept(
    "skip_to_next drops nothing",
    lambda chooser, match, right: match.first if chooser.pattern.mode == "skip_to_next" else right,
)
_kept(
    "skip_past_last_event keeps its last event",
    lambda chooser, match, right: match.last if "past" in chooser.pattern.mode else right,
)
_kept(
    "skip_past_last_event skips to the next only",
    lambda chooser, match, right: match.first + 1 if "past" in chooser.pattern.mode else right,
)
_kept(
    "skipping to a step drops what begins at it",
    lambda chooser, match, right: right + 1 if chooser.pattern.target and right > match.first else right,
)
_kept("a missing step skips to the next", lambda chooser, match, right: max(right, match.first + 1))


@mutant
class FirstAndLastExchanged(Chooser):
    """skip_to_first goes to the last event of the step."""

    def kept_from(self, match: Completed) -> int:
        right = super().kept_from(match)
        events = match.of_step(self.pattern.target or "")
        return events[-1] if self.pattern.mode == "skip_to_first" and events else right


@mutant
class OnlyRunsAreDropped(Chooser):
    """complete matches that were not given out yet are not dropped."""

    def drop(self, match: Completed) -> None:
        waiting = self.waiting
        super().drop(match)
        self.waiting = waiting


@mutant
class OnlyMatchesAreDropped(Chooser):
    """runs are not dropped."""

    def drop(self, match: Completed) -> None:
        beginnings = self.beginnings
        super().drop(match)
        self.beginnings = beginnings


@mutant
class LeaveBeforeStay(Beginning):
    """a run that leaves comes before the one that stays, one that ignores before one that takes."""

    def moves(self, place: Place, moment: Moment) -> tuple[list[tuple[Edge, Place]], bool]:
        noted, stopped = super().moves(place, moment)
        return noted[::-1], stopped
