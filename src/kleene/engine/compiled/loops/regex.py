"""The loop of the regular-expression operator (MatchRegex 2012 §2.3): a template, like `runs.py`.

A partial match keeps no more than its start and what predicates read of it; what only outputs read is added up when it
completes, or when the piece ends. Of the partial matches in `ri` and `rf` the oldest stands first.

A few of them are tried one by one, and many in blocks, where they can be (`regex_blocks.py`).

Of two partial matches in the same states that have the same future, the older one completes whenever the younger one
does, and is the longer: the younger one is dropped. Behind FREE_STATES nothing but the state decides the future.
"""

from kleene.engine.compiled.arrays.groups import *
from kleene.engine.compiled.arrays.partial_matches import *
from kleene.engine.compiled.arrays.regex_counters import *
from kleene.engine.compiled.arrays.regex_matches import *
from kleene.engine.compiled.arrays.statuses import *
from kleene.engine.compiled.loops.regex_blocks import in_blocks, in_rows, try_blocks
from kleene.engine.compiled.loops.regex_formulas import *
from kleene.engine.compiled.loops.run_copies import copy_run

# ------------------------------------------------------------------------------------------------------------------


def match_events(st, groups, bits, automaton, partials, zones, blocks, ends, matched, columns, ki, kf):
    """Goes on from where `st` says, and gives back a status.

    follow[s] are the states after s, a bit each, and the last of them those to begin with; of_variable[v] the states of
    a variable.
    """
    follow, of_variable, accepting = automaton
    stored_i, stored_f, kept_i, kept_f, ri, rf, shared_i, shared_f = partials
    low_i, low_f, high_i, high_f = zones
    found, oi, of = matched
    group, row, partial, base = st[REGEX_GROUP], st[REGEX_ROW], st[REGEX_PARTIAL], st[REGEX_BASE]
    count, side = st[REGEX_BLOCKS], st[REGEX_SIDE]
    matches, kept, work, loaded = st[REGEX_MATCHES], st[REGEX_KEPT], st[REGEX_WORK], st[REGEX_LOADED]
    first_variables = 0
    for variable in range(len(of_variable)):
        if of_variable[variable] & follow[len(follow) - 1]:
            first_variables |= 1 << variable
    status = DONE
    while group < len(groups):
        fresh = groups[group, GROUP_FRESH]
        if loaded == 0:
            partial = groups[group, GROUP_STORED_COUNT]
            if 2 * partial + 4 > len(ri):
                partial = 0
                status = NEEDS_ROOM
                break
            for r in range(partial):
                copy_run(stored_i, stored_f, groups[group, GROUP_STORED] + r, ri, rf, r)
                if not COLLECTS:
                    ri[r, PARTIAL_START] = fresh - ri[r, COUNT_COLUMN]
            if partial > 0:
                copy_run(ri, rf, 0, shared_i, shared_f, 0)
            row, base, count = fresh, 0, 0
            loaded = 1
        end = groups[group, GROUP_END]
        while row < end:
            if partial == 0 and bits[row] & first_variables == 0:
                row += 1
                continue
            if 2 * partial + 4 > len(ri) or matches + 1 > len(found):
                status = NEEDS_ROOM
                break
            if work < 0:
                status = PAUSED
                break
            if partial + 1 > st[REGEX_RUN_LIMIT]:
                status = TOO_MANY_RUNS
                break
            if BOUNDS and count == 0 and partial > MANY:
                side = 0
                count, partial = in_blocks(base, partial, ri, rf, zones, blocks)
            elif BOUNDS and count > 0 and partial < MANY // 4:
                base, count = in_rows(side, count, ri, rf, zones, blocks), 0
            oi[matches, PARTIAL_STATES] = 0
            if BOUNDS and count > 0:
                status, count, partial, work = try_blocks(
                    row,
                    side,
                    count,
                    work,
                    matches,
                    bits,
                    automaton,
                    partials,
                    zones,
                    blocks,
                    ends,
                    matched,
                    columns,
                    ki,
                    kf,
                )
                side = 1 - side
            else:
                if base > 0 and (partial == 0 or base + partial + 2 > len(ri)):
                    for r in range(partial):
                        copy_run(ri, rf, base + r, ri, rf, r)
                    base = 0
                work -= partial + 1
                status, base, partial = try_each(
                    row, base, partial, matches, bits, automaton, partials, matched, columns, ki, kf
                )
            if status < 0:
                break
            if partial > 0:
                share_event(shared_i, shared_f)
            if oi[matches, PARTIAL_STATES] != 0:
                found[matches, REGEX_MATCH_GROUP] = group
                found[matches, REGEX_MATCH_START] = oi[matches, PARTIAL_START]
                found[matches, REGEX_MATCH_END] = row
                work -= caught_up(matches, fresh, row + 1, oi, of, columns, ki, kf)
                if oi[matches, PARTIAL_FAILED] != 0:
                    status = failure_of(oi[matches, PARTIAL_FAILED])
                    break
                matches += 1
                partial = 0
                count = 0
            row += 1
        if status != DONE:
            break
        if BOUNDS and count > 0:
            base, count = in_rows(side, count, ri, rf, zones, blocks), 0
        if st[REGEX_KEEPS]:
            if kept + partial > len(kept_i):
                status = NEEDS_ROOM
                break
            groups[group, GROUP_KEPT] = kept
            groups[group, GROUP_KEPT_COUNT] = partial
            for r in range(partial):
                copy_run(ri, rf, base + r, kept_i, kept_f, kept)
                work -= caught_up(kept, fresh, end, kept_i, kept_f, columns, ki, kf)
                kept += 1
        partial = 0
        loaded = 0
        group += 1
    st[REGEX_GROUP], st[REGEX_ROW], st[REGEX_PARTIAL], st[REGEX_BASE] = group, row, partial, base
    st[REGEX_BLOCKS], st[REGEX_SIDE] = count, side
    st[REGEX_MATCHES], st[REGEX_KEPT], st[REGEX_LOADED], st[REGEX_WORK] = matches, kept, loaded, work
    return status


def try_each(row, base, partial, matches, bits, automaton, partials, matched, columns, ki, kf):
    """Tries the event on one partial match after the other, and on a new one.

    Gives back a status, where the partial matches begin then, and how many there are. The match that the event
    completes, if any, is put into row `matches` of `oi`.
    """
    follow, of_variable, accepting = automaton
    stored_i, stored_f, kept_i, kept_f, ri, rf, shared_i, shared_f = partials
    found, oi, of = matched
    top = base + partial
    left = base
    is_taken = False
    covered = 0
    seen_states = 0
    seen_next = 0
    for r in range(base, top + 1):
        next_states = follow[len(follow) - 1]
        if r < top:
            if ri[r, PARTIAL_STATES] != seen_states:  # neighbours are mostly in the same states
                seen_states = ri[r, PARTIAL_STATES]
                seen_next = states_after(seen_states, follow)
            next_states = seen_next
        reached = 0
        for variable in range(len(of_variable)):
            if next_states & of_variable[variable] and (bits[row] >> variable) & 1:
                answer = holds(variable, r, row, ri, rf, shared_i, shared_f, columns, ki, kf)
                if answer < 0:
                    return answer, base, 0
                if answer > 0:
                    reached |= next_states & of_variable[variable]
        if reached == 0:
            if left == base:
                base = r + 1
                left = base
            continue
        if not is_taken:
            is_taken = True
            status = take_event(row, shared_i, shared_f, columns, ki, kf)
            if status < 0:
                return status, base, 0
        if r == top:
            status = begun(r, row, ri, rf, columns, ki, kf)
            if status < 0:
                return status, base, 0
        status = add_event(r, row, ri, rf, columns, ki, kf)
        if status < 0:
            return status, base, 0
        if reached & accepting and oi[matches, PARTIAL_STATES] == 0:
            copy_run(ri, rf, r, oi, of, matches)
            oi[matches, PARTIAL_STATES] = reached
        reached &= ~(covered & FREE_STATES)
        if reached == 0 or (left > base and ri[left - 1, PARTIAL_STATES] == reached and agree(left - 1, r, ri, rf)):
            continue
        covered |= reached
        if left < r:
            copy_run(ri, rf, r, ri, rf, left)
        ri[left, PARTIAL_STATES] = reached
        left += 1
    return DONE, base, left - base


def begun(target, row, ri, rf, columns, ki, kf):
    """Makes the row `target` a partial match that begins with the event."""
    ri[target, PARTIAL_START] = row
    ri[target, PARTIAL_NULLS] = -1
    ri[target, PARTIAL_FAILED] = 0
    return begin_run(target, row, ri, rf, columns, ki, kf)


def states_after(mask, follow):
    found = 0
    state = 0
    while mask != 0:
        if mask & 1:
            found |= follow[state]
        mask >>= 1
        state += 1
    return found


def caught_up(target, fresh, end, ri, rf, columns, ki, kf):
    """Adds the events up to `end` that came in this piece to what only outputs read, and says how many there are."""
    start = ri[target, PARTIAL_START]
    for row in range(max(start, fresh), end):
        if ri[target, PARTIAL_FAILED] == 0:
            add_late(target, row == start, row, ri, rf, columns, ki, kf)
    return end - max(start, fresh)
