"""Sequence scan and sequence construction (SASE 2006 §3.2, §4): a template.

What stands below the line of dashes becomes part of the generated module of a query, behind its constants and formulas
(`sequence_formulas.py`).

The stacks have active instances (`arrays/instances.py`); heights[c, row] repeats the height of an instance for whoever
sorts. An event for the last component is not kept but written to `accepts`. The basic algorithm has a runtime stack of
cells instead (`arrays/cells.py`).
"""

from kleene.engine.compiled.arrays.accepts import *
from kleene.engine.compiled.arrays.cells import *
from kleene.engine.compiled.arrays.instances import *
from kleene.engine.compiled.arrays.sequence_counters import *
from kleene.engine.compiled.arrays.statuses import *
from kleene.engine.compiled.loops.sequence_formulas import *

# ------------------------------------------------------------------------------------------------------------------

INSTANCE_HEIGHT = INSTANCE_BELOW + LINKS * STACKED


def prune(row, stack, base, top, times, positions, ki, kf):
    """Drops instances that no event from this row on can be in one window with."""
    ring = stack.shape[1] - 1
    for c in range(COMPONENTS - 1):
        while base[c] < top[c] and not in_window(
            stack[c, base[c] & ring, INSTANCE_START], row, times, positions, ki, kf
        ):
            base[c] += 1


def have_common(component, row, codes, stack, base, heads, at):
    """Whether an instance before the event agrees with it on all tests: the stacks of its values share one (§4.2.2)."""
    ring = stack.shape[1] - 1
    before = component - 1
    for t in range(STACKED):
        at[t] = heads[t, key_of(t, component, row, codes), before]
    while True:
        lowest = at[0]
        for t in range(1, STACKED):
            lowest = min(lowest, at[t])
        if lowest < base[before]:
            return False
        shared = True
        for t in range(STACKED):
            while at[t] > lowest:
                at[t] = stack[before, at[t] & ring, INSTANCE_BELOW + LINKS * t]
            if at[t] != lowest:
                shared = False
        if shared:
            return True


def scan(
    st, bits, relevant, codes, times, positions, stack, base, top, heads, heights, accepts, at, node, columns, ki, kf
):
    """Puts the relevant events of the block on their stacks, and gives back a status."""
    ring = stack.shape[1] - 1
    number_of_event, end, accepted, room = st[SCAN_EVENT], st[SCAN_END], st[SCAN_ACCEPTS], st[SCAN_ROOM]
    if PRUNES and number_of_event < end:
        prune(relevant[number_of_event], stack, base, top, times, positions, ki, kf)
    while number_of_event < end:
        row = relevant[number_of_event]
        found = bits[row]
        if room < COMPONENTS or accepted == len(accepts):
            st[SCAN_EVENT], st[SCAN_ACCEPTS] = number_of_event, accepted
            return NEEDS_ROOM
        for back in range(COMPONENTS):
            c = COMPONENTS - 1 - back  # from the last, so that an event does not follow itself
            if (found >> c) & 1 == 0:
                continue
            known = True
            for t in range(STACKED):
                if key_of(t, c, row, codes) < 0:
                    known = False
            if not known:
                continue
            start = row
            if c > 0:
                head = heads[0, key_of(0, c, row, codes), c - 1]
                if head < base[c - 1]:
                    continue
                start = stack[c - 1, head & ring, INSTANCE_START]
                if WINDOW_IN_SCAN and not in_window(start, row, times, positions, ki, kf):
                    continue
                if STACKED > 1 and not have_common(c, row, codes, stack, base, heads, at):
                    continue
            verdict = scan_ok(c, row, columns, ki, kf)
            if verdict < 0:
                return verdict
            if verdict == 0:
                continue
            if c == COMPONENTS - 1:
                accepts[accepted, ACCEPT_ROW] = row
                for t in range(STACKED):
                    accepts[accepted, ACCEPT_RIP + t] = -1 if c == 0 else heads[t, key_of(t, c, row, codes), c - 1]
                accepted += 1
                continue
            number = top[c]
            place = number & ring
            stack[c, place, INSTANCE_ROW] = row
            stack[c, place, INSTANCE_START] = start
            below = heads[0, key_of(0, c, row, codes), c]
            height = stack[c, below & ring, INSTANCE_HEIGHT] + 1 if below >= base[c] else 0
            stack[c, place, INSTANCE_HEIGHT] = height
            if COMPONENTS > 2:
                heights[c, row] = height
            for t in range(STACKED):
                key = key_of(t, c, row, codes)
                stack[c, place, INSTANCE_BELOW + LINKS * t] = heads[t, key, c]
                stack[c, place, INSTANCE_RIP + LINKS * t] = -1 if c == 0 else heads[t, key, c - 1]
                heads[t, key, c] = number
            top[c] = number + 1
            room -= 1
        number_of_event += 1
    st[SCAN_EVENT], st[SCAN_ACCEPTS] = number_of_event, accepted
    return DONE


def scan_basic(
    st, bits, relevant, codes, times, positions, stack, base, top, heads, heights, accepts, at, node, columns, ki, kf
):
    """The same with a runtime stack, for all events by their rows.

    heads[0, 0, c] is the last node of state c.
    """
    ring = len(node) - 1
    row = st[SCAN_EVENT]
    if PRUNES and row < st[SCAN_END]:
        while base[0] < top[0] and not in_window(node[base[0] & ring, CELL_ROW], row, times, positions, ki, kf):
            base[0] += 1
    while row < st[SCAN_END]:
        if st[SCAN_ROOM] < COMPONENTS or st[SCAN_ACCEPTS] == len(accepts):
            st[SCAN_EVENT] = row
            return NEEDS_ROOM
        found = bits[row]
        for back in range(COMPONENTS):
            c = COMPONENTS - 1 - back
            loop = heads[0, 0, c]
            if loop < base[0]:
                loop = -1
            elif WINDOW_IN_SCAN and not in_window(node[loop & ring, CELL_START], row, times, positions, ki, kf):
                loop = -1
            forward = -1
            start = row
            if (found >> c) & 1:
                forward = FROM_THE_START
                if c > 0:
                    forward = heads[0, 0, c - 1]
                    if forward < base[0]:
                        forward = -1
                    else:
                        start = node[forward & ring, CELL_START]
                        if WINDOW_IN_SCAN and not in_window(start, row, times, positions, ki, kf):
                            forward = -1
                if forward != -1:
                    verdict = scan_ok(c, row, columns, ki, kf)
                    if verdict < 0:
                        return verdict
                    if verdict == 0:
                        forward = -1
            if c == COMPONENTS - 1:
                if forward != -1:
                    accepts[st[SCAN_ACCEPTS], ACCEPT_ROW] = row
                    accepts[st[SCAN_ACCEPTS], ACCEPT_RIP] = forward if c > 0 else -1
                    st[SCAN_ACCEPTS] += 1
                continue
            if loop < 0 and forward == -1:
                heads[0, 0, c] = -1
                continue
            number = top[0]
            place = number & ring
            node[place, CELL_LOOP] = loop
            node[place, CELL_FORWARD] = forward
            node[place, CELL_ROW] = row
            node[place, CELL_START] = start if forward != -1 else node[loop & ring, CELL_START]
            heads[0, 0, c] = number
            top[0] = number + 1
            st[SCAN_ROOM] -= 1
        row += 1
    st[SCAN_EVENT] = row
    return DONE


def extract(end_row, begin, node, base, stack, size, times, positions, ki, kf):
    """Makes stacks of the part of the runtime stack that leads to the accepting event (§3.2), each node once.

    Gives back whether there is any sequence, or -1 if `stack` has not enough rows.
    """
    ring = len(node) - 1
    for c in range(COMPONENTS - 2, -1, -1):
        count = 0
        at = begin
        begin = -1
        while at >= base[0]:
            if WINDOW_IN_CONSTRUCTION and not in_window(node[at & ring, CELL_ROW], end_row, times, positions, ki, kf):
                break
            if node[at & ring, CELL_FORWARD] != -1:
                if count == len(stack[c]):
                    return -1
                stack[c, count, INSTANCE_ROW] = node[at & ring, CELL_ROW]
                stack[c, count, INSTANCE_START] = node[at & ring, CELL_START]
                stack[c, count, INSTANCE_BELOW] = count + 1
                stack[c, count, INSTANCE_RIP] = -1
                count += 1
                if begin == -1:
                    begin = node[at & ring, CELL_FORWARD]
            at = node[at & ring, CELL_LOOP]
        size[c] = count
        if count == 0:
            return 0
        stack[c, count - 1, INSTANCE_BELOW] = -1
    for c in range(1, COMPONENTS - 1):
        earlier = 0
        for k in range(size[c]):
            while earlier < size[c - 1] and stack[c - 1, earlier, INSTANCE_ROW] >= stack[c, k, INSTANCE_ROW]:
                earlier += 1
            stack[c, k, INSTANCE_RIP] = earlier if earlier < size[c - 1] else -1
    return 1


def leave(st, accept, component, written, together, tried):
    """Writes down where construction stops."""
    st[CONSTRUCT_ACCEPT], st[CONSTRUCT_COMPONENT] = accept, component
    st[CONSTRUCT_WRITTEN], st[CONSTRUCT_TOGETHER], st[CONSTRUCT_TRIED] = written, together, tried


def construct(st, accepts, room, limit, stacks, context, columns, ki, kf):
    """Walks back from accepting events and writes sequences, from where `st` says, and gives back a status."""
    found, rows, cursor, size = room
    stack, base, node = stacks
    codes, negative, entry_keys, directory, buckets, times, positions = context
    last = COMPONENTS - 1
    ring = stack.shape[1] - 1
    number, c = st[CONSTRUCT_ACCEPT], st[CONSTRUCT_COMPONENT]
    written, own, tried = st[CONSTRUCT_WRITTEN], st[CONSTRUCT_TOGETHER], st[CONSTRUCT_TRIED]
    while number < st[SCAN_ACCEPTS]:
        end_row = accepts[number, ACCEPT_ROW]
        if c == COMPONENTS:
            own = 0
            rows[last] = end_row
            verdict = bound_ok(
                last, rows, codes, negative, entry_keys, directory, buckets, times, positions, columns, ki, kf
            )
            if verdict < 0:
                return verdict
            tried += 1
            if verdict == 0:
                number += 1
                continue
            if last == 0:
                if written == len(found):
                    leave(st, number, c, written, own, tried)
                    return OUTPUT_FULL
                found[written, 0] = rows[0]
                written += 1
                number += 1
                continue
            if BASIC:
                enough = extract(
                    end_row, accepts[number, ACCEPT_RIP], node, base, stack, size, times, positions, ki, kf
                )
                if enough < 0:
                    leave(st, number, c, written, own, tried)
                    return NEEDS_ROOM
                if enough == 0:
                    number += 1
                    continue
            c = last - 1
            cursor[c] = 0 if BASIC else accepts[number, ACCEPT_RIP]
        while c < last:
            if tried > st[CONSTRUCT_WORK]:
                leave(st, number, c, written, own, tried)
                return PAUSED
            k = cursor[c]
            if k < (0 if BASIC else base[c]):
                c += 1
                if c < last:
                    cursor[c] = stack[c, cursor[c] & ring, INSTANCE_BELOW]
                continue
            place = k & ring
            if WINDOW_IN_CONSTRUCTION and not in_window(
                stack[c, place, INSTANCE_START], end_row, times, positions, ki, kf
            ):
                # Instances below it follow first events that are no younger.
                cursor[c] = -1
                continue
            rows[c] = stack[c, place, INSTANCE_ROW]
            tried += 1
            verdict = bound_ok(
                c, rows, codes, negative, entry_keys, directory, buckets, times, positions, columns, ki, kf
            )
            if WINDOW_OF_ENDS and c == 0 and not in_window(rows[0], end_row, times, positions, ki, kf):
                verdict = 0
            if verdict < 0:
                return verdict
            if verdict == 1 and c > 0:
                cursor[c - 1] = stack[c, place, INSTANCE_RIP]
                c -= 1
                continue
            if verdict == 1:
                if written == len(found) or own == limit:
                    leave(st, number, c, written, own, tried)
                    return TOO_MANY_MATCHES if own == limit else OUTPUT_FULL
                for i in range(COMPONENTS):
                    found[written, i] = rows[i]
                written += 1
                own += 1
            cursor[c] = stack[c, place, INSTANCE_BELOW]
        c = COMPONENTS
        number += 1
    leave(st, number, c, written, own, tried)
    return DONE
