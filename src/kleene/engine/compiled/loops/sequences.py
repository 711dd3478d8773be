"""Sequence scan and sequence construction (SASE 2006 §3.2, §4): a template.

What stands below the line of dashes becomes part of the generated module of a query, behind its constants and formulas
(`sequence_formulas.py`).

The active instances of component c are rows of stack[c], a ring: instance k stands at k modulo its length, those before
base[c] are gone, and top[c] is the next. For each test t that has stacks of its own, an instance is linked to those of
its value:

    stack[c, k, 0] the row of the event
    stack[c, k, 1] the row of the youngest first event that it can follow
    stack[c, k, 2 + 2t] the instance before it in the stack of its value
    stack[c, k, 3 + 2t] RIP: the most recent instance of component c - 1 with that value when the event came

stack[c, k, -1] is its height on its stack (of the first test), which heights[c, row] repeats for whoever sorts.
heads[t, value, c] is the most recent instance. An event for the last component is not kept but written to `accepts`:
its row, then its RIP for each test.

The basic algorithm has a runtime stack instead, in which every event has a node for each active state: node[n, 0] the
node of the same state at the event before (the self-loop), node[n, 1] that of the state before, if the event made the
transition (-1 if not, -2 from the start), node[n, 2] the row, node[n, 3] as stack[c, k, 1].
"""

from __future__ import annotations

from kleene.engine.compiled.loops.sequence_formulas import (
    BASIC,
    COMPONENTS,
    PRUNES,
    STACKED,
    WINDOW_IN_CONSTRUCTION,
    WINDOW_IN_SCAN,
    WINDOW_OF_ENDS,
    bound_ok,
    in_window,
    key_of,
    scan_ok,
)

# ------------------------------------------------------------------------------------------------------------------


def prune(row, stack, base, top, times, positions, ki, kf):
    """Drops instances that no event from this row on can be in one window with."""
    ring = stack.shape[1] - 1
    for c in range(COMPONENTS - 1):
        while base[c] < top[c] and not in_window(stack[c, base[c] & ring, 1], row, times, positions, ki, kf):
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
                at[t] = stack[before, at[t] & ring, 2 + 2 * t]
            if at[t] != lowest:
                shared = False
        if shared:
            return True


def scan(
    st, bits, relevant, codes, times, positions, stack, base, top, heads, heights, accepts, at, node, columns, ki, kf
):
    """Puts the relevant events on their stacks, from number st[0] to before st[1]; st[2] counts the accepts.

    Stops for room (1), at an error, or at the end (0). st: 3 how many instances may come before a stack can be full.
    """
    ring = stack.shape[1] - 1
    number_of_event, end, accepted, room = st[0], st[1], st[2], st[3]
    if PRUNES and number_of_event < end:
        prune(relevant[number_of_event], stack, base, top, times, positions, ki, kf)
    while number_of_event < end:
        row = relevant[number_of_event]
        found = bits[row]
        if room < COMPONENTS or accepted == len(accepts):
            st[0], st[2] = number_of_event, accepted
            return 1
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
                start = stack[c - 1, head & ring, 1]
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
                accepts[accepted, 0] = row
                for t in range(STACKED):
                    accepts[accepted, 1 + t] = -1 if c == 0 else heads[t, key_of(t, c, row, codes), c - 1]
                accepted += 1
                continue
            number = top[c]
            place = number & ring
            stack[c, place, 0] = row
            stack[c, place, 1] = start
            below = heads[0, key_of(0, c, row, codes), c]
            height = stack[c, below & ring, 2 + 2 * STACKED] + 1 if below >= base[c] else 0
            stack[c, place, 2 + 2 * STACKED] = height
            if COMPONENTS > 2:
                heights[c, row] = height
            for t in range(STACKED):
                key = key_of(t, c, row, codes)
                stack[c, place, 2 + 2 * t] = heads[t, key, c]
                stack[c, place, 3 + 2 * t] = -1 if c == 0 else heads[t, key, c - 1]
                heads[t, key, c] = number
            top[c] = number + 1
            room -= 1
        number_of_event += 1
    st[0], st[2] = number_of_event, accepted
    return 0


def scan_basic(
    st, bits, relevant, codes, times, positions, stack, base, top, heads, heights, accepts, at, node, columns, ki, kf
):
    """The same with a runtime stack, for all events by their rows: each gets a cell of nodes.

    heads[0, 0, c] is the last node of state c.
    """
    ring = len(node) - 1
    row = st[0]
    if PRUNES and row < st[1]:
        while base[0] < top[0] and not in_window(node[base[0] & ring, 2], row, times, positions, ki, kf):
            base[0] += 1
    while row < st[1]:
        if st[3] < COMPONENTS or st[2] == len(accepts):
            st[0] = row
            return 1
        found = bits[row]
        for back in range(COMPONENTS):
            c = COMPONENTS - 1 - back
            loop = heads[0, 0, c]
            if loop < base[0]:
                loop = -1
            elif WINDOW_IN_SCAN and not in_window(node[loop & ring, 3], row, times, positions, ki, kf):
                loop = -1
            forward = -1
            start = row
            if (found >> c) & 1:
                forward = -2
                if c > 0:
                    forward = heads[0, 0, c - 1]
                    if forward < base[0]:
                        forward = -1
                    else:
                        start = node[forward & ring, 3]
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
                    accepts[st[2], 0] = row
                    accepts[st[2], 1] = forward if c > 0 else -1
                    st[2] += 1
                continue
            if loop < 0 and forward == -1:
                heads[0, 0, c] = -1
                continue
            number = top[0]
            place = number & ring
            node[place, 0] = loop
            node[place, 1] = forward
            node[place, 2] = row
            node[place, 3] = start if forward != -1 else node[loop & ring, 3]
            heads[0, 0, c] = number
            top[0] = number + 1
            st[3] -= 1
        row += 1
    st[0] = row
    return 0


def extract(end_row, begin, node, base, stack, size, times, positions, ki, kf):
    """The part of the runtime stack that leads to the accepting event, as stacks (§3.2): each node is visited once.

    Gives back how many rows of `stack` were needed, or -1 if there are not enough.
    """
    ring = len(node) - 1
    for c in range(COMPONENTS - 2, -1, -1):
        count = 0
        at = begin
        begin = -1
        while at >= base[0]:
            if WINDOW_IN_CONSTRUCTION and not in_window(node[at & ring, 2], end_row, times, positions, ki, kf):
                break
            if node[at & ring, 1] != -1:
                if count == len(stack[c]):
                    return -1
                stack[c, count, 0] = node[at & ring, 2]
                stack[c, count, 1] = node[at & ring, 3]
                stack[c, count, 2] = count + 1
                stack[c, count, 3] = -1
                count += 1
                if begin == -1:
                    begin = node[at & ring, 1]
            at = node[at & ring, 0]
        size[c] = count
        if count == 0:
            return 0
        stack[c, count - 1, 2] = -1
    for c in range(1, COMPONENTS - 1):
        earlier = 0
        for k in range(size[c]):
            while earlier < size[c - 1] and stack[c - 1, earlier, 0] >= stack[c, k, 0]:
                earlier += 1
            stack[c, k, 3] = earlier if earlier < size[c - 1] else -1
    return 1


def construct(
    st,
    accepts,
    found,
    rows,
    cursor,
    size,
    limit,
    stack,
    base,
    node,
    codes,
    negative,
    entry_keys,
    directory,
    buckets,
    times,
    positions,
    columns,
    ki,
    kf,
):
    """Walks back from accepting events and writes sequences; stops when `found` is full (1), or the limit met (3).

    It also stops (1) after so many tries as st[9] says, so that whoever calls can look at the clock.

    st: 4 the accept, 5 the component to bind next (COMPONENTS: none yet), 6 sequences written, 7 those of this accept,
    8 candidates that were looked at.
    """
    last = COMPONENTS - 1
    ring = stack.shape[1] - 1
    number, c, written, own, tried = st[4], st[5], st[6], st[7], st[8]
    while number < st[2]:
        end_row = accepts[number, 0]
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
                    st[4], st[5], st[6], st[7], st[8] = number, c, written, own, tried
                    return 1
                found[written, 0] = rows[0]
                written += 1
                number += 1
                continue
            if BASIC:
                enough = extract(end_row, accepts[number, 1], node, base, stack, size, times, positions, ki, kf)
                if enough < 0:
                    st[4], st[5], st[6], st[7], st[8] = number, c, written, own, tried
                    return 2
                if enough == 0:
                    number += 1
                    continue
            c = last - 1
            cursor[c] = 0 if BASIC else accepts[number, 1]
        while c < last:
            if tried > st[9]:
                st[4], st[5], st[6], st[7], st[8] = number, c, written, own, tried
                return 1
            k = cursor[c]
            if k < (0 if BASIC else base[c]):
                c += 1
                if c < last:
                    cursor[c] = stack[c, cursor[c] & ring, 2]
                continue
            place = k & ring
            if WINDOW_IN_CONSTRUCTION and not in_window(stack[c, place, 1], end_row, times, positions, ki, kf):
                # Instances below it follow first events that are no younger.
                cursor[c] = -1
                continue
            rows[c] = stack[c, place, 0]
            tried += 1
            verdict = bound_ok(
                c, rows, codes, negative, entry_keys, directory, buckets, times, positions, columns, ki, kf
            )
            if WINDOW_OF_ENDS and c == 0 and not in_window(rows[0], end_row, times, positions, ki, kf):
                verdict = 0
            if verdict < 0:
                return verdict
            if verdict == 1 and c > 0:
                cursor[c - 1] = stack[c, place, 3]
                c -= 1
                continue
            if verdict == 1:
                if written == len(found) or own == limit:
                    st[4], st[5], st[6], st[7], st[8] = number, c, written, own, tried
                    return 3 if own == limit else 1
                for i in range(COMPONENTS):
                    found[written, i] = rows[i]
                written += 1
                own += 1
            cursor[c] = stack[c, place, 2]
        c = COMPONENTS
        number += 1
    st[4], st[5], st[6], st[7], st[8] = number, c, written, own, tried
    return 0
