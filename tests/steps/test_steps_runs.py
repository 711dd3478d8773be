"""The checker searches each beginning by itself; stepping all runs together, by sections 4 and 6, gives the same."""

import random
from dataclasses import dataclass, field

import pytest

from generate import random_pattern, random_stream
from steps_brute import Answer, Beginning, Chooser, Completed, MissingStepError, Timeout, check, names, partitions
from steps_conditions import Bindings, Moment
from steps_model import Event, Pattern
from steps_notation import render, render_stream
from steps_places import FINAL, IGNORE, PENDING, Place, Places

Run = tuple[Place, Bindings]


@dataclass
class Together:
    """One partition, with the list of its runs."""

    pattern: Pattern
    events: list[Event]
    runs: list[Run] = field(default_factory=list)
    complete: list[Bindings] = field(default_factory=list)
    given: list[Bindings] = field(default_factory=list)
    known: set[Bindings] = field(default_factory=set)
    timeouts: dict[Bindings, int | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.places = Places(self.pattern)
        self.rules = Beginning(self.places, self.events, 0)
        self.chooser = Chooser(self.pattern, [])

    def all_events(self) -> None:
        for index in range(len(self.events)):
            self.time(index)
            self.one_event(index)
        self.time(len(self.events))
        self.runs = []
        self.give_out()

    def time(self, index: int) -> None:
        kept: list[Run] = []
        ended: list[Bindings] = []
        for place, bindings in self.runs:
            over = list(self.rules.bounds_over(place, bindings, index))
            if not over:
                kept.append((place, bindings))
            elif self.places.reaches(place, PENDING, None):
                ended.append(bindings)
            else:
                times = [time for time in over if time is not None]
                self.timeouts.setdefault(bindings, min(times) if times else None)
        self.runs = kept
        self.join(ended)
        self.give_out()

    def one_event(self, index: int) -> None:
        runs: list[Run] = []
        completed: list[Bindings] = []
        for place, bindings in [*self.runs, (self.places.start, ())]:
            moment = Moment(self.events[index], bindings)
            noted, stopped = self.rules.moves(place, moment)
            kept: list[Run] = []
            for edge, owner in noted:
                if edge.kind == IGNORE:
                    if bindings and edge.target.kind == FINAL:
                        completed.append(bindings)
                    elif bindings:
                        kept.append((edge.target, bindings))
                    continue
                taken = (*bindings, (self.places.step(owner.position).name, moment.event))
                if self.places.reaches(edge.target, FINAL, moment):
                    completed.append(taken)
                if edge.target.kind != FINAL:
                    kept.append((edge.target, taken))
            if not stopped and not (bindings and self.rules.negated(moment)):
                runs += kept
        self.runs = sorted(dict.fromkeys(runs), key=lambda run: run[1][0][1].position)
        self.join(completed)
        self.give_out()

    def join(self, completed: list[Bindings]) -> None:
        for bindings in completed:
            if bindings not in self.known:
                self.known.add(bindings)
                self.complete.append(bindings)
        self.complete.sort(key=_first)

    def give_out(self) -> None:
        if self.pattern.mode == "no_skip":
            self.given += self.complete
            self.complete = []
        while self.complete and not any(_first(bindings) < _first(self.complete[0]) for _, bindings in self.runs):
            match = self.complete.pop(0)
            self.given.append(match)
            keep = self.chooser.kept_from(Completed(0, match))
            self.runs = [run for run in self.runs if _first(run[1]) >= keep]
            self.complete = [bindings for bindings in self.complete if _first(bindings) >= keep]


def _first(bindings: Bindings) -> int:
    return bindings[0][1].position


def _together(pattern: Pattern, events: list[Event]) -> tuple[list[str], list[str]]:
    matches: list[Bindings] = []
    timeouts: list[Timeout] = []
    for members in partitions(pattern, events):
        partition = Together(pattern, members)
        partition.all_events()
        matches += partition.given
        timeouts += [Timeout(names(pattern, bindings), time) for bindings, time in partition.timeouts.items()]
    return _texts(Answer([names(pattern, bindings) for bindings in matches], timeouts))


def _texts(answer: Answer) -> tuple[list[str], list[str]]:
    return sorted(map(repr, answer.matches)), sorted(map(repr, answer.timeouts))


@pytest.mark.parametrize("seed", range(20))
def test_searching_by_beginnings_is_stepping_all_runs(seed: int) -> None:
    for number in range(50):
        source = random.Random(f"{seed}-{number}")
        pattern = random_pattern(source)
        events = random_stream(source, pattern)
        try:
            answer = check(pattern, events)
        except MissingStepError:
            with pytest.raises(MissingStepError):
                _together(pattern, events)
            continue
        assert _together(pattern, events) == _texts(answer), f"{render(pattern)} on {render_stream(events)}"
