"""The loop of the regular-expression operator (MatchRegex 2012 §2.3): a template, like `runs.py`.

Of the partial matches in `ri` and `rf` the oldest stands first. It is mostly the oldest that end, so the first of them
need not be row 0.
"""

from kleene.engine.compiled.arrays.groups import *
from kleene.engine.compiled.arrays.partial_matches import *
from kleene.engine.compiled.arrays.regex_counters import *
from kleene.engine.compiled.arrays.regex_matches import *
from kleene.engine.compiled.arrays.statuses import *
from kleene.engine.compiled.loops.regex_formulas import *
from kleene.engine.compiled.loops.run_copies import clear_run, copy_run

# ------------------------------------------------------------------------------------------------------------------


def match_events(st, groups, bits, automaton, partials, matched, columns, ki, kf):
    """Goes on from where `st` says, and gives back a status.

    follow[s] are the states after s, a bit each, and the last of them those to begin with; of_variable[v] the states of
    a variable.
    """
    follow, of_variable, accepting = automaton
    stored_i, stored_f, kept_i, kept_f, ri, rf = partials
    found, oi, of = matched
    group, row, partial = st[REGEX_GROUP], st[REGEX_ROW], st[REGEX_PARTIAL]
    matches, kept = st[REGEX_MATCHES], st[REGEX_KEPT]
    limit, keep, loaded, base = st[REGEX_RUN_LIMIT], st[REGEX_KEEPS], st[REGEX_LOADED], st[REGEX_BASE]
    work = st[REGEX_WORK]
    variables, states = len(of_variable), len(follow) - 1
    first_states = follow[states]
    first_variables = 0
    for variable in range(variables):
        if of_variable[variable] & first_states:
            first_variables |= 1 << variable
    status = DONE
    while group < len(groups):
        if loaded == 0:
            partial = groups[group, GROUP_STORED_COUNT]
            if partial + 2 > len(ri):
                partial = 0
                status = NEEDS_ROOM
                break
            for r in range(partial):
                copy_run(stored_i, stored_f, groups[group, GROUP_STORED] + r, ri, rf, r)
            row = groups[group, GROUP_FRESH]
            loaded = 1
            base = 0
        end = groups[group, GROUP_END]
        while row < end:
            if partial == 0 and bits[row] & first_variables == 0:
                row += 1
                continue
            if base > 0 and (partial == 0 or base + partial + 2 > len(ri)):
                for r in range(partial):
                    copy_run(ri, rf, base + r, ri, rf, r)
                base = 0
            if partial + 2 > len(ri) or matches + 1 > len(found):
                status = NEEDS_ROOM
                break
            if work < 0:
                status = PAUSED
                break
            work -= partial + 1
            if partial + 1 > limit:
                status = TOO_MANY_RUNS
                break
            top = base + partial
            clear_run(ri, rf, top)
            ri[top, PARTIAL_START] = row
            ri[top, PARTIAL_NULLS] = -1
            left = base
            complete = -1
            seen_mask = 0
            seen_next = 0
            for r in range(base, top + 1):
                next_states = first_states
                if r < top:
                    if ri[r, PARTIAL_STATES] != seen_mask:  # neighbours are mostly in the same states
                        seen_mask = ri[r, PARTIAL_STATES]
                        seen_next = 0
                        mask = seen_mask
                        state = 0
                        while mask != 0:
                            if mask & 1:
                                seen_next |= follow[state]
                            mask >>= 1
                            state += 1
                    next_states = seen_next
                reached = 0
                for variable in range(variables):
                    if next_states & of_variable[variable] and (bits[row] >> variable) & 1:
                        answer = holds(variable, r, row, ri, rf, columns, ki, kf)
                        if answer < 0:
                            status = answer
                            break
                        if answer > 0:
                            reached |= next_states & of_variable[variable]
                if status < 0:
                    break
                if reached == 0:
                    if left == base:
                        base = r + 1
                        left = base
                    continue
                if left < r:
                    copy_run(ri, rf, r, ri, rf, left)
                ri[left, PARTIAL_STATES] = reached
                status = add_event(left, row, ri, rf, columns, ki, kf)
                if status < 0:
                    break
                if complete < 0 and reached & accepting:
                    complete = left
                left += 1
            if status < 0:
                break
            partial = left - base
            if complete >= 0:
                found[matches, REGEX_MATCH_GROUP] = group
                found[matches, REGEX_MATCH_START] = ri[complete, PARTIAL_START]
                found[matches, REGEX_MATCH_END] = row
                copy_run(ri, rf, complete, oi, of, matches)
                matches += 1
                partial = 0
            row += 1
        if status != DONE:
            break
        if keep:
            if kept + partial > len(kept_i):
                status = NEEDS_ROOM
                break
            groups[group, GROUP_KEPT] = kept
            groups[group, GROUP_KEPT_COUNT] = partial
            for r in range(partial):
                copy_run(ri, rf, base + r, kept_i, kept_f, kept + r)
            kept += partial
        partial = 0
        loaded = 0
        group += 1
    st[REGEX_GROUP], st[REGEX_ROW], st[REGEX_PARTIAL] = group, row, partial
    st[REGEX_MATCHES], st[REGEX_KEPT], st[REGEX_LOADED], st[REGEX_BASE] = matches, kept, loaded, base
    return status
