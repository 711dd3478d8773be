"""Wrong readings of contiguity, loops, greedy, until and groups."""

from dataclasses import replace

from steps_brute import Beginning, Chooser, Rules
from steps_conditions import Moment, holds
from steps_model import ANY, RELAXED, STRICT, Quantifier, Step
from steps_places import IGNORE, TAKE, Edge, Formula, Place, Places, Position

MUTANTS: dict[str, Rules] = {}


def mutant(kind: type[Places] | type[Beginning] | type[Chooser]) -> type:
    """Registers a class that replaces one of those of the rules; its docstring says what is wrong with it."""
    name = (kind.__doc__ or kind.__name__).strip().rstrip(".")
    if issubclass(kind, Places):
        MUTANTS[name] = Rules(places=kind)
    elif issubclass(kind, Beginning):
        MUTANTS[name] = Rules(beginning=kind)
    else:
        MUTANTS[name] = Rules(chooser=kind)
    return kind


# ---------------------------------------------------------------- contiguity and loops


@mutant
class RelaxedAsAny(Places):
    """relaxed behaves as any."""

    def contiguity(self, position: Position) -> str:
        found = super().contiguity(position)
        return ANY if found == RELAXED else found


@mutant
class AnyAsRelaxed(Places):
    """any behaves as relaxed."""

    def contiguity(self, position: Position) -> str:
        found = super().contiguity(position)
        return RELAXED if found == ANY else found


@mutant
class LoopKeepsStepContiguity(Places):
    """inside a repetition the step's own contiguity counts."""

    def contiguity(self, position: Position) -> str:
        index, number = position[-1]
        if number > 1 and index > 0:
            return self.part(position).contiguity
        return super().contiguity(position)


@mutant
class ConsecutiveAlsoAtTheBeginning(Places):
    """consecutive counts for the first event of the step too."""

    def contiguity(self, position: Position) -> str:
        return STRICT if self.quantifier(position).inner == STRICT else super().contiguity(position)


@mutant
class WaitingKeepsTheWayOut(Places):
    """a run that has ignored an event can still pass over or leave."""

    def cell_edges(self, place: Place) -> list[Edge]:
        return [replace(edge, target=place) if edge.kind == IGNORE else edge for edge in super().cell_edges(place)]


@mutant
class RangeHasNoUpperEnd(Places):
    """times(n, m) takes one event more."""

    def number_after(self, quantifier: Quantifier, number: int) -> int | None:
        if quantifier.high is not None and quantifier.low < quantifier.high and number == quantifier.high:
            return number + 1
        return super().number_after(quantifier, number)


@mutant
class OptionalWithoutWaiting(Places):
    """an optional step is passed over only where it cannot take the event."""

    def ways_out(self, position: Position) -> list[Edge]:
        def only_without(formula: Formula) -> Formula:
            return lambda moment: formula(moment) and not self.may_take(position, moment)

        ways = super().ways_out(position)
        return [replace(way, formula=only_without(way.formula)) for way in ways] if position[-1][1] == 1 else ways


# ---------------------------------------------------------------- greedy


@mutant
class NoGuard(Places):
    """the greedy guard is ignored."""

    def guarded(self, place: Place, moment: Moment) -> bool:
        return False


@mutant
class GuardOnTakesOnly(Places):
    """the greedy guard restricts takes only, not ignores."""

    def edges(self, place: Place) -> list[Edge]:
        bare = self.bare_edges(place)
        return [
            guarded if guarded.kind == TAKE else plain
            for guarded, plain in zip(super().edges(place), bare, strict=True)
        ]


@mutant
class GuardOnIgnoresOnly(Places):
    """the greedy guard restricts ignores only, not takes."""

    def edges(self, place: Place) -> list[Edge]:
        bare = self.bare_edges(place)
        return [
            guarded if guarded.kind == IGNORE else plain
            for guarded, plain in zip(super().edges(place), bare, strict=True)
        ]


@mutant
class GuardAfterUntil(Places):
    """the greedy guard counts for what left at an until event too."""

    def own_ways_out(self, position: Position) -> list[Edge]:
        return [replace(edge, target=replace(edge.target, free=False)) for edge in super().own_ways_out(position)]


@mutant
class GuardAfterFixedNumber(Places):
    """greedy has an effect on times(n)."""

    def guards_what_follows(self, quantifier: Quantifier) -> bool:
        return quantifier.greedy


@mutant
class GuardEndsWithTheLoop(Places):
    """the greedy guard forgets the loop once the run has ignored an event outside."""

    def edges(self, place: Place) -> list[Edge]:
        return [
            replace(edge, target=replace(edge.target, free=True))
            if edge.kind == IGNORE and edge.target == place
            else edge
            for edge in super().edges(place)
        ]


# ---------------------------------------------------------------- until


@mutant
class UntilEventTaken(Places):
    """the until event is taken."""

    def may_take(self, position: Position, moment: Moment) -> bool:
        return holds(self.step(position).condition, moment) and not self.group_until(position, moment)


@mutant
class UntilIgnored(Places):
    """a run waiting in a loop may ignore the until event."""

    def may_ignore(self, position: Position, moment: Moment) -> bool:
        contiguity = self.contiguity(position)
        refused = contiguity == STRICT or self.group_until(position, moment)
        return not refused and (contiguity == ANY or not holds(self.step(position).condition, moment))


@mutant
class UntilBeforeTheLoop(Places):
    """the until event does harm before the loop has begun."""

    def may_ignore(self, position: Position, moment: Moment) -> bool:
        return super().may_ignore(position, moment) and not self.until(position, moment)


@mutant
class NoGroupUntil(Places):
    """the until of a group does not reach its steps."""

    def group_until(self, position: Position, moment: Moment) -> bool:
        return False


@mutant
class InnermostGroupUntil(Places):
    """the until of a group does not reach the groups inside it."""

    def group_until(self, position: Position, moment: Moment) -> bool:
        until = self.quantifier(position[:-1]).until if len(position) > 1 else None
        return until is not None and holds(until, moment)


@mutant
class GroupUntilOnItsWaysOut(Places):
    """the until of a group forbids leaving it."""

    def leave_formula(self, position: Position) -> Formula:
        own = position if isinstance(self.part(position), Step) else (*position, (0, 1))
        return lambda moment: not self.group_until(own, moment)


@mutant
class GroupUntilFromTheSecondRound(Places):
    """the until of a group does not count in its first round."""

    def group_until(self, position: Position, moment: Moment) -> bool:
        groups = [(self.quantifier(position[:depth]), position[depth - 1][1]) for depth in range(1, len(position))]
        return any(group.until is not None and number > 1 and holds(group.until, moment) for group, number in groups)


# ---------------------------------------------------------------- groups


@mutant
class GroupKeepsItsFirstContiguity(Places):
    """a group's first step does not take over the group's contiguity."""

    def contiguity(self, position: Position) -> str:
        index, number = position[-1]
        return STRICT if (index, number) == (0, 1) else super().contiguity(position)


@mutant
class RoundsWithTheGroupsContiguity(Places):
    """between rounds the group's contiguity as a step counts."""

    def contiguity(self, position: Position) -> str:
        if position[-1][1] > 1 and not isinstance(self.part(position), Step):
            return self.contiguity((*position[:-1], (position[-1][0], 1)))
        return super().contiguity(position)


@mutant
class OwnWaysOutOnly(Places):
    """a group's first step does not get the group's ways out."""

    def ways_out(self, position: Position) -> list[Edge]:
        return self.own_ways_out(position) if self.can_leave(position) else []
