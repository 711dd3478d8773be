"""The search for row patterns: a template, like `runs.py`.

For one start row after the other, the ways that the automaton allows are tried in order of preference, depth first.
Frame f of the stack has consumed f rows: it has a state, the edge to try next, and whether what lies behind it is open,
that is, may turn out otherwise from another start. The registers are row 0 of `ri` and `rf`; row f
keeps what the row of frame f has changed, to be put back when the frame is left.

Where no formula looks at the match so far, a state that failed at a row fails there again whatever came before: it is
marked in `failed` and never entered again.
"""

from __future__ import annotations

from kleene.engine.compiled.loops.row_formulas import (
    ALL_MATCHES,
    LOOKS_AT_MATCH,
    MOST_ROWS,
    REGISTERS,
    REMEMBERS,
    RUN_VARIABLES,
    SKIP,
    SKIP_TARGET,
    WINDOW_IN_TIME,
    bind,
    clear,
    fits_run,
    in_window,
    unbind,
)

# ------------------------------------------------------------------------------------------------------------------


def may_take(start, row, depth, seen_end, rows, times, ki, kf):
    """Whether a row that is not there yet could still belong to a match from `start`."""
    if MOST_ROWS >= 0 and depth >= MOST_ROWS:
        return False
    if WINDOW_IN_TIME and row >= seen_end:
        # Behind the times of all rows stands the time that the stream has come to, if that is known.
        return len(times) == rows or in_window(start, rows, times, ki, kf)
    return in_window(start, row, times, ki, kf)


def search(
    st,
    groups,
    bits,
    times,
    edge_begin,
    edge_target,
    edge_variable,
    next_bits,
    variable_of,
    failed,
    stack_state,
    stack_edge,
    stack_open,
    ri,
    rf,
    found,
    states,
    seen,
    columns,
    ki,
    kf,
):
    """Searches on from where `st` says: 0 at the end, 1 for a longer stack, 2 for room for matches, else an error.

    Between two starts it pauses (6) after so many rows as st[10] says.

    st: 0 group, 1 start row, 2 depth + 1 or 0 between searches, 3 matches, 4 their states, 5 whether rows may follow,
    6 the most steps from one start, 7 steps so far, 8 matches before this start, 9 states before this start.
    groups[g]: 0 its first row, 1 the row behind its last, 2 the start to go on with, 3 matches so far, 4 whether its
    first row is the partition's, 5 the row behind the last that may be looked at, 6 the row behind the last start.
    seen: of no length; or a mark for each row that was a start before: a search that comes to one ends there. Matches
    after which one cannot skip are not an error then: they are told by a number below 0, and end the search.
    next_bits[s]: the variables that can follow state s, a bit each, and a bit that every row has if a match can end.
    """
    group, start, depth, matches, used = st[0], st[1], st[2] - 1, st[3], st[4]
    more_rows, most_steps, steps = st[5], st[6], st[7]
    before_matches, before_used = st[8], st[9]
    work = st[10]
    count = len(variable_of)
    status = 0
    while group < len(groups):
        begin, end, seen_end = groups[group, 0], groups[group, 1], groups[group, 5]
        if start < 0:
            start = groups[group, 2]
        is_open = False
        stop_at = groups[group, 6]
        while start < stop_at:
            number = groups[group, 3] + 1
            if depth < 0:
                if work < 0:
                    status = 6
                    break
                if len(seen) > 0:
                    if seen[start] == 1:
                        break
                    seen[start] = 1
                state = count if start == begin and groups[group, 4] == 1 else count + 1
                if bits[start] & next_bits[state] == 0:
                    start += 1
                    continue
                depth = 0
                steps = 0
                before_matches, before_used = matches, used
                stack_state[0] = state
                stack_edge[0] = edge_begin[state]
                stack_open[0] = 0
                if REGISTERS > 0:
                    clear(ri, rf)
            length = -1
            state, edge = stack_state[depth], stack_edge[depth]
            stop = edge_begin[state + 1]
            while True:
                if edge == stop:
                    if REMEMBERS and depth > 0 and stack_open[depth] == 0:
                        failed[start + depth - 1, state >> 6] |= 1 << (state & 63)
                    if depth == 0:
                        depth = -1
                        break
                    if REGISTERS > 0:
                        unbind(variable_of[state], depth, ri, rf)
                    depth -= 1
                    if REMEMBERS and stack_open[depth + 1] == 1:
                        stack_open[depth] = 1
                    state, edge = stack_state[depth], stack_edge[depth]
                    stop = edge_begin[state + 1]
                    continue
                target = edge_target[edge]
                row = start + depth
                if target < 0:
                    edge += 1
                    if target == -2 and row != end:
                        continue
                    if target == -2 and more_rows:
                        is_open = True
                        break
                    if matches + 1 > len(found) or used + depth > len(states):
                        stack_edge[depth] = edge - 1
                        status = 2
                        break
                    found[matches, 0] = group
                    found[matches, 1] = start
                    found[matches, 2] = depth
                    found[matches, 3] = number
                    for at in range(depth):
                        states[used + at] = stack_state[at + 1]
                    used += depth
                    work -= depth
                    matches += 1
                    if ALL_MATCHES:
                        if matches - before_matches > most_steps:
                            status = 3
                            break
                        if REMEMBERS:
                            stack_open[depth] = 1
                        continue
                    length = depth
                    break
                if row >= end:
                    if more_rows and may_take(start, row, depth, seen_end, len(bits), times, ki, kf):
                        is_open = True
                        break
                    if REMEMBERS and more_rows:  # a later start might take it
                        stack_open[depth] = 1
                    edge += 1
                    continue
                variable = edge_variable[edge]
                if (bits[row] >> variable) & 1 == 0:
                    edge += 1
                    continue
                # A row that nothing can follow need not be entered.
                if row + 1 < end and bits[row + 1] & next_bits[target] == 0:
                    edge += 1
                    continue
                if (MOST_ROWS >= 0 and depth >= MOST_ROWS) or not in_window(start, row, times, ki, kf):
                    if REMEMBERS:
                        stack_open[depth] = 1
                    edge += 1
                    continue
                if REMEMBERS and (failed[row, target >> 6] >> (target & 63)) & 1:
                    edge += 1
                    continue
                if LOOKS_AT_MATCH:
                    steps += 1
                    if steps > most_steps:
                        status = 3
                        break
                if depth + 1 >= len(stack_state):
                    stack_edge[depth] = edge
                    status = 1
                    break
                edge += 1
                if REGISTERS > 0:
                    problem = bind(variable, row, start, depth + 1, begin, seen_end, ri, rf, columns, ki, kf)
                    if problem < 0:
                        status = problem
                        break
                if LOOKS_AT_MATCH and (RUN_VARIABLES >> variable) & 1:
                    fits = fits_run(variable, row, start, number, begin, seen_end, ri, rf, columns, ki, kf)
                    if fits < 0:
                        status = fits
                        break
                    if fits == 0:
                        if REGISTERS > 0:
                            unbind(variable, depth + 1, ri, rf)
                        continue
                stack_edge[depth] = edge
                depth += 1
                work -= 1
                state = target
                edge, stop = edge_begin[state], edge_begin[state + 1]
                stack_state[depth] = state
                if REMEMBERS:
                    stack_open[depth] = 0
            if status != 0:
                break
            depth = -1
            if is_open:
                matches, used = before_matches, before_used
                break
            if ALL_MATCHES:
                groups[group, 3] += matches - before_matches
                start += 1
            elif length < 0:
                start += 1
            else:
                groups[group, 3] += 1
                if length == 0 or SKIP == 1:
                    start += 1
                elif SKIP == 0:
                    start += length
                else:
                    target = -1
                    for at in range(length):
                        if (SKIP_TARGET >> variable_of[states[used - length + at]]) & 1:
                            target = at
                            if SKIP == 2:
                                break
                    if target <= 0:
                        status = 4 if target < 0 else 5
                        if len(seen) > 0:
                            found[matches - 1, 3] = -status
                            status = 0
                        break
                    start += target
        if status != 0:
            break
        groups[group, 2] = start
        group += 1
        start = -1
    st[0], st[1], st[2], st[3], st[4], st[7] = group, start, depth + 1, matches, used, steps
    st[8], st[9] = before_matches, before_used
    return status
