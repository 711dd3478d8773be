"""The search for row patterns: a template, like `runs.py`.

From one start row after the other, the ways that the automaton allows are tried in order of preference, depth first.
Frame f of the stack has consumed f rows. It has a state, the edge to try next, and whether what lies behind it is open,
that is, may turn out otherwise from another start.

Where no formula looks at the match so far, a state that failed at a row fails there again whatever came before: it is
marked in `failed` and never entered again.
"""

from kleene.engine.compiled.arrays.row_automaton import *
from kleene.engine.compiled.arrays.row_groups import *
from kleene.engine.compiled.arrays.row_matches import *
from kleene.engine.compiled.arrays.search_counters import *
from kleene.engine.compiled.arrays.statuses import *
from kleene.engine.compiled.loops.row_formulas import *

# ------------------------------------------------------------------------------------------------------------------


def may_take(start, row, depth, seen_end, rows, times, ki, kf):
    """Whether a row that is not there yet could still belong to a match from `start`."""
    if MOST_ROWS_AT >= 0 and depth >= ki[MOST_ROWS_AT]:
        return False
    if WINDOW_IN_TIME and row >= seen_end:
        # Behind the times of all rows stands the time that the stream has come to, if that is known.
        return len(times) == rows or in_window(start, rows, times, ki, kf)
    return in_window(start, row, times, ki, kf)


def is_at_border(row, begin, end):
    """Whether formulas of the row look at rows outside of its frame."""
    return row - begin < LOOK_BACK or (BOUNDED_FRAMES and row + LOOK_AHEAD >= end)


def visible_bits(row, begin, end, bits, columns, ki, kf):
    if FRAMES:
        if is_at_border(row, begin, end):
            return row_bits(row, begin, end, columns, ki, kf)
    return bits[row]


def next_start(starts, start):
    """The first row from `start` on where a match may begin: of the rows before, it is known that none does."""
    found = start
    while starts[found] > found:
        found = starts[found]
    while starts[start] > start:
        after = starts[start]
        starts[start] = found
        start = after
    return found


def sought(starts, start, current, end):
    """Where to search on if no match of the row `current` begins at `start`: there, or for the next row."""
    if not BOUNDED_FRAMES and start - current >= LOOK_BACK:
        starts[start] = start + 1
    start += 1
    if not BOUNDED_FRAMES and start < end and start - current >= LOOK_BACK:
        start = next_start(starts, start)
    if start < end:
        return start, current
    return current + 1, current + 1


def search(st, groups, bits, times, automaton, failed, frames, stack, matched, seen, columns, ki, kf):
    """Searches on from where `st` says, and gives back a status. It pauses between two starts only.

    `seen` is empty, or has a mark for each row that was a start before: a search that comes to such a row ends there.
    A match after which one cannot skip is not an error then; it ends the search.
    next_bits[s] has a bit for each variable that can follow state s, and the bit of every row if a match can end.

    Of a window, `frames` are the ends of each row's frame, and for each row the next where a match may begin, as far as
    that is known; `start` is where a match of the row `current` is tried.
    """
    frame_ends, starts = frames
    current = st[SEARCH_CURRENT]
    edge_begin, edge_target, edge_variable, next_bits, variable_of = automaton
    stack_state, stack_edge, stack_open, ri, rf = stack
    found, states = matched
    group, start, depth = st[SEARCH_GROUP], st[SEARCH_START], st[SEARCH_FRAMES] - 1
    matches, used = st[SEARCH_MATCHES], st[SEARCH_STATES]
    before_matches, before_used = st[SEARCH_MATCHES_BEFORE], st[SEARCH_STATES_BEFORE]
    more_rows, most_steps, steps = st[SEARCH_MORE_ROWS], st[SEARCH_MOST_STEPS], st[SEARCH_STEPS]
    work = st[SEARCH_WORK]
    count = len(variable_of)
    status = DONE
    while group < len(groups):
        begin, end = groups[group, ROW_GROUP_FIRST], groups[group, ROW_GROUP_END]
        seen_end = groups[group, ROW_GROUP_SEEN_END]
        if start < 0:
            start = groups[group, ROW_GROUP_START]
        is_open = False
        stop_at = groups[group, ROW_GROUP_STARTS_END]
        while start < stop_at:
            number = groups[group, ROW_GROUP_MATCHES] + 1
            if FRAMES:
                if not SEEKS or current < 0:
                    current = start
                begin = current
                if BOUNDED_FRAMES:
                    end = seen_end = frame_ends[current]
            if depth < 0:
                if work < 0:
                    status = PAUSED
                    break
                if len(seen) > 0:
                    if seen[start] == 1:
                        break
                    seen[start] = 1
                state = count if start == begin and groups[group, ROW_GROUP_OPENS] == 1 else count + 1
                if visible_bits(start, begin, end, bits, columns, ki, kf) & next_bits[state] == 0:
                    if SEEKS:
                        start, current = sought(starts, start, current, end)
                    else:
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
                    if target == ACCEPT_AT_END and row != end:
                        continue
                    if target == ACCEPT_AT_END and more_rows:
                        is_open = True
                        break
                    if matches + 1 > len(found) or used + depth > len(states):
                        stack_edge[depth] = edge - 1
                        status = OUTPUT_FULL
                        break
                    found[matches, ROW_MATCH_GROUP] = group
                    found[matches, ROW_MATCH_START] = start
                    found[matches, ROW_MATCH_LENGTH] = depth
                    found[matches, ROW_MATCH_NUMBER] = number
                    found[matches, ROW_MATCH_OF_ROW] = current
                    for at in range(depth):
                        states[used + at] = stack_state[at + 1]
                    used += depth
                    work -= depth
                    matches += 1
                    if ALL_MATCHES:
                        if matches - before_matches > most_steps:
                            status = TOO_MANY_STEPS
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
                    if REMEMBERS and (more_rows or BOUNDED_FRAMES):  # a later start might take it
                        stack_open[depth] = 1
                    edge += 1
                    continue
                variable = edge_variable[edge]
                if FRAMES and REMEMBERS and is_at_border(row, begin, end):
                    stack_open[depth] = 1
                if (visible_bits(row, begin, end, bits, columns, ki, kf) >> variable) & 1 == 0:
                    edge += 1
                    continue
                # A row that nothing can follow need not be entered.
                if row + 1 < end:
                    following = visible_bits(row + 1, begin, end, bits, columns, ki, kf)
                    if following & next_bits[target] == 0:
                        edge += 1
                        continue
                is_full = MOST_ROWS_AT >= 0 and depth >= ki[MOST_ROWS_AT]
                if is_full or not in_window(start, row, times, ki, kf):
                    if REMEMBERS:
                        stack_open[depth] = 1
                    edge += 1
                    continue
                is_known = not FRAMES or not is_at_border(row + 1, begin, end)
                if REMEMBERS and is_known and (failed[row, target >> 6] >> (target & 63)) & 1:
                    edge += 1
                    continue
                if LOOKS_AT_MATCH:
                    steps += 1
                    if steps > most_steps:
                        status = TOO_MANY_STEPS
                        break
                if depth + 1 >= len(stack_state):
                    stack_edge[depth] = edge
                    status = NEEDS_ROOM
                    break
                edge += 1
                if REGISTERS > 0:
                    now = (number, depth + 1, stack_state, variable_of)
                    problem = bind(variable, row, start, *now, begin, seen_end, ri, rf, columns, ki, kf)
                    if problem < 0:
                        status = problem
                        break
                if LOOKS_AT_MATCH and (RUN_VARIABLES >> variable) & 1:
                    match = (number, stack_state, variable_of)
                    fits = fits_run(variable, row, start, *match, begin, seen_end, ri, rf, columns, ki, kf)
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
            if status != DONE:
                break
            depth = -1
            if is_open:
                matches, used = before_matches, before_used
                break
            if ALL_MATCHES:
                groups[group, ROW_GROUP_MATCHES] += matches - before_matches
                start += 1
            elif length < 0:
                if SEEKS:
                    start, current = sought(starts, start, current, end)
                else:
                    start += 1
            else:
                groups[group, ROW_GROUP_MATCHES] += 1
                if length == 0 or SKIP == SKIP_TO_NEXT:
                    start = current + 1 if SEEKS else start + 1
                elif SKIP == SKIP_PAST_LAST:
                    start += length
                else:
                    target = -1
                    for at in range(length):
                        if (SKIP_TARGET >> variable_of[states[used - length + at]]) & 1:
                            target = at
                            if SKIP == SKIP_TO_FIRST:
                                break
                    if target <= 0:
                        status = NO_ROW_TO_SKIP_TO if target < 0 else SKIPS_TO_ITS_START
                        if len(seen) > 0:
                            found[matches - 1, ROW_MATCH_NUMBER] = -status
                            status = DONE
                        break
                    start += target
                if SEEKS:
                    current = start
        if status != DONE:
            break
        groups[group, ROW_GROUP_START] = start
        group += 1
        start = current = -1
    st[SEARCH_CURRENT] = current
    st[SEARCH_GROUP], st[SEARCH_START], st[SEARCH_FRAMES], st[SEARCH_STEPS] = group, start, depth + 1, steps
    st[SEARCH_MATCHES], st[SEARCH_STATES] = matches, used
    st[SEARCH_MATCHES_BEFORE], st[SEARCH_STATES_BEFORE] = before_matches, before_used
    return status
