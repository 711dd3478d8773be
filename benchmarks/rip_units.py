"""The techniques of RIP 2013 §3 and §4, in threads: SEQ, RB, RB+, SB and SB+, all with the same loops inside.

A partial match is a row of numbers and a row of the prices that later conditions read; matches are counted and summed
up in a checksum. Units are threads; what they do with a batch is compiled and lets go of the interpreter's lock.
Between the thread that hands out events and the units, and between units, are bounded queues of batches (§5.7).
"""

from __future__ import annotations

import heapq
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from rip_query import Machine, RipQuery

Numbers = np.ndarray[Any, Any]

BATCH = 5_000
"""Events of a batch, the paper's n (§5.1.3)."""
QUEUED = 8
"""Batches that wait for a unit at most, before the one that sends them waits."""

START, LAST, STATE, PATH, FIELDS = range(5)
"""Columns of partial matches: first and last event, the variable of the last one, a hash of all variables so far."""
MATCHES, CHECKSUM, ALL_EVALUATIONS, EVALUATIONS = range(4)
"""Places in a tally; evaluations are counted for each variable, from the last place on."""
# The compiled code of these loops is kept until this file changes; therefore all numbers that they know are here.
OPERATORS = ("<", "<=", ">", ">=")
CONSTANT, PREVIOUS = -2, -1
"""What a condition compares with, where it is not a kept price."""
OPTIONAL, REPEATED, CONDITIONS, CONDITIONS_END, KEPT_AS = range(5)
"""Columns of `Machine.variables`."""
PATH_FACTOR, START_FACTOR, END_FACTOR, MATCH_FACTOR = 1_000_003, 0x9E3779B1, 0x85EBCA77, 0x27D4EB2F165667C5
FOLDED, WORD = 29, 2**64 - 1
_FOLDED_BITS = (1 << (64 - FOLDED)) - 1

# ---- compiled loops


@njit(nogil=True, cache=True)
def holds(machine: Machine, variable: int, price: float, before: float, kept: Numbers, row: int) -> bool:
    """Whether the event fulfills the conditions of a variable, for the partial match that kept the prices of a row."""
    for number in range(machine.variables[variable, CONDITIONS], machine.variables[variable, CONDITIONS_END]):
        reference = machine.conditions[number, 1]
        if reference == CONSTANT:
            other = machine.constants[number]
        elif reference == PREVIOUS:
            other = before
        else:
            other = kept[row, reference]
        operator = machine.conditions[number, 0]
        if operator == 0:
            is_met = price < other
        elif operator == 1:
            is_met = price <= other
        elif operator == 2:
            is_met = price > other
        else:
            is_met = price >= other
        if not is_met:
            return False
    return True


@njit(nogil=True, cache=True)
def count_match(tally: Numbers, start: int, end: int, path: int) -> None:
    mixed = path + start * START_FACTOR + end * END_FACTOR
    mixed ^= (mixed >> FOLDED) & _FOLDED_BITS
    tally[MATCHES] += 1
    tally[CHECKSUM] += mixed * MATCH_FACTOR


@njit(nogil=True, cache=True)
def add_evaluations(tally: Numbers) -> None:
    tally[ALL_EVALUATIONS] = 0
    for place in range(EVALUATIONS, len(tally)):
        tally[ALL_EVALUATIONS] += tally[place]


@njit(nogil=True, cache=True)
def put_partial_match(
    rows: Numbers, kept: Numbers, index: int, start: int, last: int, state: int, path: int, values: Numbers, value: int
) -> None:
    """Writes a partial match with the prices that stand in a row of `values`."""
    rows[index, START] = start
    rows[index, LAST] = last
    rows[index, STATE] = state
    rows[index, PATH] = path
    for place in range(kept.shape[1]):
        kept[index, place] = values[value, place]


@njit(nogil=True, cache=True)
def copy_partial_matches(rows: Numbers, kept: Numbers, begin: int, count: int, to: Numbers, to_kept: Numbers) -> None:
    for index in range(count):
        for column in range(FIELDS):
            to[index, column] = rows[begin + index, column]
        for place in range(kept.shape[1]):
            to_kept[index, place] = kept[begin + index, place]


@njit(nogil=True, cache=True)
def with_room(rows: Numbers, kept: Numbers, count: int, wanted: int) -> tuple[Numbers, Numbers]:
    """The same partial matches in arrays that have room for so many."""
    size = max(wanted, 2 * len(rows))
    more_rows, more_kept = np.empty((size, FIELDS), np.int64), np.empty((size, kept.shape[1]), np.float64)
    copy_partial_matches(rows, kept, 0, count, more_rows, more_kept)
    return more_rows, more_kept


# In the loops below no array is exchanged for another: numba would count references to them at every step. Two
# generations of runs are the two halves of one array, and a loop that lacks room returns, to be continued with more.


@njit(nogil=True, cache=True)
def follow_some_runs(
    machine: Machine,
    prices: Numbers,
    before: float,
    first: int,
    starts: int,
    stride: int,
    next_start: int,
    position: int,
    rows: Numbers,
    kept: Numbers,
    begin: int,
    count: int,
    tally: Numbers,
) -> tuple[int, int, int, int]:
    """`follow_runs` from a position on, as far as there is room: where it got, and the runs and start after that."""
    states, half = len(machine.variables), len(rows) // 2
    while position < len(prices) and count * states < half:
        price, event = prices[position], first + position
        new_begin = half - begin
        made = new_begin
        for run in range(begin, begin + count):
            if event - rows[run, START] >= machine.max_length:
                continue
            state = rows[run, STATE]
            target = state if machine.variables[state, REPEATED] else state + 1
            while True:
                tally[EVALUATIONS + target] += 1
                if holds(machine, target, price, before, kept, run):
                    path = rows[run, PATH] * PATH_FACTOR + target + 1
                    if target == states - 1:
                        count_match(tally, rows[run, START], event, path)
                    else:
                        put_partial_match(rows, kept, made, rows[run, START], event, target, path, kept, run)
                        if machine.variables[target, KEPT_AS] >= 0:
                            kept[made, machine.variables[target, KEPT_AS]] = price
                        made += 1
                if target != state and not machine.variables[target, OPTIONAL]:
                    break
                target += 1
        if position == next_start and position < starts:
            next_start += stride
            tally[EVALUATIONS] += 1
            if holds(machine, 0, price, before, kept, 0):
                put_partial_match(rows, kept, made, event, event, 0, 1, kept, made)
                if machine.variables[0, KEPT_AS] >= 0:
                    kept[made, machine.variables[0, KEPT_AS]] = price
                made += 1
        begin, count = new_begin, made - new_begin
        before = price
        position += 1
    return position, begin, count, next_start


@njit(nogil=True, cache=True)
def follow_runs(
    machine: Machine,
    prices: Numbers,
    before: float,
    first: int,
    starts: int,
    stride: int,
    offset: int,
    rows: Numbers,
    kept: Numbers,
    count: int,
    tally: Numbers,
) -> tuple[Numbers, Numbers, int]:
    """Algorithm 1 for a batch: the runs that are open after it, at the front of the arrays.

    A run is started by every `stride`th of the first `starts` events of the batch, from the one at `offset` on.
    `first` is the number of the first event, and `before` the price of the one before it.
    """
    position, begin, next_start = 0, 0, offset
    while True:
        position, begin, count, next_start = follow_some_runs(
            machine, prices, before, first, starts, stride, next_start, position, rows, kept, begin, count, tally
        )
        if begin:
            copy_partial_matches(rows, kept, begin, count, rows, kept)
            begin = 0
        if position == len(prices):
            break
        rows, kept = with_room(rows, kept, count, 2 * (count * len(machine.variables) + 1))
        before = prices[position - 1] if position else before
    add_evaluations(tally)
    return rows, kept, count


@njit(nogil=True, cache=True)
def begin_matches(machine: Machine, prices: Numbers, first: int, tally: Numbers) -> tuple[Numbers, Numbers]:
    """What the unit of the first variable makes of a batch: a partial match for each event that fits (§4.1)."""
    rows, kept = np.empty((len(prices), FIELDS), np.int64), np.empty((len(prices), machine.kept), np.float64)
    made = 0
    for position in range(len(prices)):
        tally[EVALUATIONS] += 1
        if holds(machine, 0, prices[position], 0.0, kept, 0):
            put_partial_match(rows, kept, made, first + position, first + position, 0, 1, kept, made)
            if machine.variables[0, KEPT_AS] >= 0:
                kept[made, machine.variables[0, KEPT_AS]] = prices[position]
            made += 1
    add_evaluations(tally)
    return rows[:made], kept[:made]


@njit(nogil=True, cache=True)
def extend_some_matches(
    machine: Machine,
    variable: int,
    prices: Numbers,
    before: float,
    first: int,
    rows: Numbers,
    kept: Numbers,
    index: int,
    is_sent_on: bool,
    out_rows: Numbers,
    out_kept: Numbers,
    sent: int,
    wait_rows: Numbers,
    wait_kept: Numbers,
    waiting: int,
    tally: Numbers,
) -> tuple[int, int, int]:
    """Extends partial matches from an index on, as far as there is room: where it got, and how many it put where."""
    is_last, is_repeated = variable == len(machine.variables) - 1, machine.variables[variable, REPEATED]
    place_of_price = machine.variables[variable, KEPT_AS]
    while index < len(rows) and sent + machine.max_length < len(out_rows) and waiting < len(wait_rows):
        start, last, state, path = rows[index, START], rows[index, LAST], rows[index, STATE], rows[index, PATH]
        if is_sent_on:
            put_partial_match(out_rows, out_kept, sent, start, last, state, path, kept, index)
            sent += 1
        while last + 1 - start < machine.max_length:
            position = last + 1 - first
            if position >= len(prices):
                put_partial_match(wait_rows, wait_kept, waiting, start, last, state, path, kept, index)
                waiting += 1
                break
            price = prices[position]
            tally[EVALUATIONS + variable] += 1
            if not holds(machine, variable, price, prices[position - 1] if position else before, kept, index):
                break
            last, state, path = last + 1, variable, path * PATH_FACTOR + variable + 1
            if is_last:
                count_match(tally, start, last, path)
                break
            put_partial_match(out_rows, out_kept, sent, start, last, state, path, kept, index)
            if place_of_price >= 0:
                out_kept[sent, place_of_price] = price
            sent += 1
            if not is_repeated:  # prices of repeated variables are not kept: what is kept stays the same
                break
        index += 1
    return index, sent, waiting


@njit(nogil=True, cache=True)
def extend_matches(
    machine: Machine,
    variable: int,
    prices: Numbers,
    before: float,
    first: int,
    rows: Numbers,
    kept: Numbers,
    own_rows: Numbers,
    own_kept: Numbers,
    tally: Numbers,
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """What the unit of a later variable makes of a batch: partial matches to send on, and those it keeps (§4.1).

    `rows` come from the unit before; where the variable may be left out they are also sent on as they are. `own_rows`
    are those that wait for the first event of this batch, and have been sent on already where they had to be.
    """
    is_optional = machine.variables[variable, OPTIONAL] != 0
    room = len(rows) + len(own_rows) + 2 * machine.max_length
    out_rows, out_kept, sent = np.empty((room, FIELDS), np.int64), np.empty((room, machine.kept), np.float64), 0
    wait_rows, wait_kept, waiting = np.empty((64, FIELDS), np.int64), np.empty((64, machine.kept), np.float64), 0
    for is_own in (True, False):
        some_rows, some_kept = (own_rows, own_kept) if is_own else (rows, kept)
        index = 0
        while True:
            index, sent, waiting = extend_some_matches(
                machine,
                variable,
                prices,
                before,
                first,
                some_rows,
                some_kept,
                index,
                is_optional and not is_own,
                out_rows,
                out_kept,
                sent,
                wait_rows,
                wait_kept,
                waiting,
                tally,
            )
            if index == len(some_rows):
                break
            if waiting == len(wait_rows):
                wait_rows, wait_kept = with_room(wait_rows, wait_kept, waiting, 0)
            else:
                out_rows, out_kept = with_room(out_rows, out_kept, sent, 0)
    add_evaluations(tally)
    return out_rows[:sent], out_kept[:sent], wait_rows[:waiting], wait_kept[:waiting]


# ---- batches, queues and threads


class Batch(NamedTuple):
    """Events in their order. Runs may start from the first `starts` of them; `first` is the number of the first."""

    first: int
    prices: Numbers
    starts: int


class Work(NamedTuple):
    """What a unit did with a batch: evaluations of variables, and seconds of CPU time."""

    first: int
    evaluations: int
    seconds: float


class Channel:
    """A bounded queue; made of two that are not, since those are written in C and Python's bounded one is not."""

    def __init__(self, readers: int = 1) -> None:
        self._items: SimpleQueue[Any] = SimpleQueue()
        self._room: SimpleQueue[None] = SimpleQueue()
        self._readers = readers
        self._is_closed = False
        for _ in range(QUEUED * readers):
            self._room.put(None)

    def put(self, item: Any) -> None:
        self._room.get()
        if self._is_closed:
            self._room.put(None)
        else:
            self._items.put(item)

    def get(self) -> Any:
        item = self._items.get()
        self._room.put(None)
        return item

    def end(self) -> None:
        """Tells each reader that nothing more comes."""
        for _ in range(self._readers):
            self._items.put(None)

    def close(self) -> None:
        """For a reader that failed: from now on all that is sent is lost, and nobody waits."""
        self._is_closed = True
        self._room.put(None)
        self.end()


class Unit(ABC):
    """A processing unit: a thread with a tally of its own."""

    def __init__(self, query: RipQuery) -> None:
        self.machine = query.machine
        self.tally = new_tally(query)
        self.work: list[Work] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._live, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self) -> None:
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _live(self) -> None:
        try:
            self._attend()
        except BaseException as error:
            self._error = error
            self.give_up()

    def _attend(self) -> None:
        evaluations, seconds = 0, time.thread_time()
        while (batch := self.take()) is not None:
            now, done = time.thread_time(), int(self.tally[ALL_EVALUATIONS])
            self.work.append(Work(batch.first, done - evaluations, now - seconds))
            evaluations, seconds = done, now

    @abstractmethod
    def take(self) -> Batch | None:
        """Waits for a batch and works on it; None after the last."""

    @abstractmethod
    def give_up(self) -> None: ...


def new_tally(query: RipQuery) -> Numbers:
    # Not shorter, so that no two threads write into one line of a cache.
    return np.zeros(max(64, EVALUATIONS + len(query.names)), np.int64)


class Runs:
    """The open runs of a unit, and the loop that follows them."""

    def __init__(self, machine: Machine, tally: Numbers) -> None:
        self._machine, self._tally = machine, tally
        self._rows, self._kept = np.zeros((128, FIELDS), np.int64), np.zeros((128, machine.kept), np.float64)
        self._count, self._before = 0, 0.0

    def read(self, batch: Batch, units: int = 1, unit: int = 0) -> None:
        """Starts runs from events whose number is `unit` modulo `units`, and follows them and those still open."""
        self._rows, self._kept, self._count = follow_runs(
            self._machine,
            batch.prices,
            self._before,
            batch.first,
            batch.starts,
            units,
            (unit - batch.first) % units,
            self._rows,
            self._kept,
            self._count,
            self._tally,
        )
        self._before = batch.prices[-1]

    def forget(self) -> None:
        self._count = 0


class RunUnit(Unit):
    """Follows runs; with batches that are shared out (RB+), nothing is left of a batch when the next one comes."""

    def __init__(self, query: RipQuery, inbox: Channel, units: int = 1, unit: int = 0, is_shared: bool = False) -> None:
        super().__init__(query)
        self._inbox, self._units, self._unit, self._is_shared = inbox, units, unit, is_shared
        self._runs = Runs(self.machine, self.tally)

    def take(self) -> Batch | None:
        batch: Batch | None = self._inbox.get()
        if batch is None:
            return None
        self._runs.read(batch, self._units, self._unit)
        if self._is_shared:
            self._runs.forget()
        return batch

    def give_up(self) -> None:
        self._inbox.close()


class FirstStateUnit(Unit):
    def __init__(self, query: RipQuery, events: Channel, outbox: Channel) -> None:
        super().__init__(query)
        self._events, self._outbox = events, outbox

    def take(self) -> Batch | None:
        batch: Batch | None = self._events.get()
        if batch is None:
            self._outbox.end()
        else:
            self._outbox.put(begin_matches(self.machine, batch.prices, batch.first, self.tally))
        return batch

    def give_up(self) -> None:
        self._events.close()
        self._outbox.end()


class StateUnit(Unit):
    """The unit of a later variable: joins partial matches with the events that follow them.

    For each batch of events one message of partial matches comes from the unit before, or in turn from each of them.
    """

    def __init__(
        self, query: RipQuery, variable: int, events: Channel, inboxes: Sequence[Channel], outbox: Channel | None
    ) -> None:
        super().__init__(query)
        self._variable, self._events, self._inboxes, self._outbox = variable, events, inboxes, outbox
        self._own = np.empty((0, FIELDS), np.int64), np.empty((0, self.machine.kept), np.float64)
        self._before, self._turn = 0.0, 0
        self.received = 0

    def take(self) -> Batch | None:
        batch: Batch | None = self._events.get()
        arrived = None if batch is None else self._inboxes[self._turn].get()
        if batch is None or arrived is None:  # without arrivals, the unit before has failed
            self.give_up()
            return None
        self._turn = (self._turn + 1) % len(self._inboxes)
        self.received += len(arrived[0])
        rows, kept, *own = extend_matches(
            self.machine, self._variable, batch.prices, self._before, batch.first, *arrived, *self._own, self.tally
        )
        self._own, self._before = (own[0], own[1]), batch.prices[-1]
        if self._outbox is not None:
            self._outbox.put((rows, kept))
        return batch

    def give_up(self) -> None:
        for channel in (self._events, *self._inboxes):
            channel.close()
        if self._outbox is not None:
            self._outbox.end()


# ---- techniques


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a technique found, and what it cost."""

    seconds: float
    matches: int
    checksum: int
    evaluations: tuple[int, ...]
    """For each variable, by all units."""
    unit_evaluations: tuple[int, ...]
    """For each unit."""
    unit_seconds: tuple[float, ...]
    """CPU time of each unit; and, last, of the thread that hands out events, where there is one."""
    copied: int
    """Events that were copied into queues."""
    forwarded: int = 0
    """Partial matches that went from unit to unit."""

    @property
    def answer(self) -> tuple[int, int]:
        return self.matches, self.checksum


@dataclass(slots=True)
class Receiver:
    """Hands out events; what it copies is what a unit gets for itself."""

    prices: Numbers
    copied: int = 0

    def batches(self, size: int, shared: int = 0) -> Iterator[Batch]:
        """Batches of a size, of which the last `shared` events are the first of the next batch (§4.2)."""
        if not 0 <= 2 * shared <= size:
            raise ValueError(f"a batch of {size} events cannot share {shared} with the next one")
        for first in range(0, len(self.prices), size - shared):
            prices = self.prices[first : first + size]
            yield Batch(first, prices, size - shared)

    def copy(self, batch: Batch) -> Batch:
        self.copied += len(batch.prices)
        return batch._replace(prices=batch.prices.copy())


def sequential(query: RipQuery, prices: Numbers, batch: int = BATCH) -> Outcome:
    """SEQ: one thread, no queues."""
    tally = new_tally(query)
    runs = Runs(query.machine, tally)
    begin, cpu = time.perf_counter(), time.thread_time()
    for piece in Receiver(prices).batches(batch):
        runs.read(piece)
    seconds, cpu = time.perf_counter() - begin, time.thread_time() - cpu
    return _outcome(query, seconds, [tally], [int(tally[ALL_EVALUATIONS])], [cpu], 0)


def round_robin(query: RipQuery, prices: Numbers, units: int, batch: int = BATCH) -> Outcome:
    """RB: every unit reads every event; runs are started by the units in turn."""
    channels = [Channel() for _ in range(units)]
    workers = [RunUnit(query, channel, units, unit) for unit, channel in enumerate(channels)]

    def hand_out(receiver: Receiver) -> None:
        for piece in receiver.batches(batch):
            for channel in channels:
                channel.put(receiver.copy(piece))

    return _run(query, prices, workers, channels, hand_out)


def in_batches(query: RipQuery, prices: Numbers, units: int, batch: int = BATCH, shared: int | None = None) -> Outcome:
    """RB+: a batch goes to the unit that is idle, which follows the runs that start in it to their ends."""
    channel = Channel(readers=units)
    workers = [RunUnit(query, channel, is_shared=True) for _ in range(units)]
    overlap = query.longest - 1 if shared is None else shared

    def hand_out(receiver: Receiver) -> None:
        for piece in receiver.batches(batch, overlap):
            channel.put(receiver.copy(piece))

    return _run(query, prices, workers, [channel], hand_out, is_shared_out=True)


def by_state(query: RipQuery, prices: Numbers, batch: int = BATCH, first_units: int = 1) -> Outcome:
    """SB: a unit for each variable. SB+ is the same with two units for the first variable, which take turns."""
    states = len(query.names)
    first_events, events = [Channel() for _ in range(first_units)], [Channel() for _ in range(states - 1)]
    begun, boxes = [Channel() for _ in range(first_units)], [Channel() for _ in range(states - 2)]
    workers: list[Unit] = [FirstStateUnit(query, own, box) for own, box in zip(first_events, begun, strict=True)]
    for variable in range(1, states):
        inboxes = begun if variable == 1 else [boxes[variable - 2]]
        outbox = boxes[variable - 1] if variable < states - 1 else None
        workers.append(StateUnit(query, variable, events[variable - 1], inboxes, outbox))

    def hand_out(receiver: Receiver) -> None:
        for number, piece in enumerate(receiver.batches(batch)):
            for channel in (first_events[number % first_units], *events):
                channel.put(receiver.copy(piece))

    return _run(query, prices, workers, [*first_events, *events], hand_out)


def _run(
    query: RipQuery,
    prices: Numbers,
    workers: Sequence[Unit],
    channels: Iterable[Channel],
    hand_out: Callable[[Receiver], None],
    is_shared_out: bool = False,
) -> Outcome:
    receiver = Receiver(prices)
    for worker in workers:
        worker.start()
    begin, cpu = time.perf_counter(), time.thread_time()
    hand_out(receiver)
    for channel in channels:
        channel.end()
    cpu = time.thread_time() - cpu
    for worker in workers:
        worker.join()
    seconds = time.perf_counter() - begin
    if is_shared_out:
        work = sorted(item for worker in workers for item in worker.work)
        evaluations = shared_out([item.evaluations for item in work], len(workers))
        times = shared_out([item.seconds for item in work], len(workers))
    else:
        evaluations = [sum(item.evaluations for item in worker.work) for worker in workers]
        times = [sum(item.seconds for item in worker.work) for worker in workers]
    forwarded = sum(worker.received for worker in workers if isinstance(worker, StateUnit))
    tallies = [worker.tally for worker in workers]
    return _outcome(query, seconds, tallies, evaluations, [*times, cpu], receiver.copied, forwarded)


def shared_out(costs: Iterable[float], units: int) -> list[float]:
    """What each unit has done after all batches, if there is a core for each and a batch goes to the one idle first.

    That is what RB+ would do on enough cores. On fewer, which unit gets a batch is the operating system's choice.

    >>> shared_out([5, 1, 1, 1, 4], 2)
    [7.0, 5.0]
    """
    loads = [0.0] * units
    for cost in costs:
        heapq.heapreplace(loads, loads[0] + cost)
    return sorted(loads, reverse=True)


def _outcome(
    query: RipQuery,
    seconds: float,
    tallies: Sequence[Numbers],
    unit_evaluations: Sequence[float],
    unit_seconds: Sequence[float],
    copied: int,
    forwarded: int = 0,
) -> Outcome:
    total = sum(tallies[1:], tallies[0])
    by_variable = total[EVALUATIONS : EVALUATIONS + len(query.names)]
    return Outcome(
        seconds,
        int(total[MATCHES]),
        int(total[CHECKSUM]) & WORD,
        tuple(map(int, by_variable)),
        tuple(map(int, unit_evaluations)),
        tuple(unit_seconds),
        copied,
        forwarded,
    )
