"""The loop of the regular-expression operator (MatchRegex 2012 §2.3): a template, like `runs.py`.

A partial match is a row of `ri` and `rf`: ri[r, 0] the row where it began, ri[r, 1] the states it may be in, ri[r, 2]
which registers are NULL, a bit each, then the registers. The oldest stands first; since it is mostly the oldest that
end, the first of them need not be row 0.
"""

from __future__ import annotations

from kleene.engine.compiled.loops.regex_formulas import FLOATS, INTEGERS, add_event, holds

# ------------------------------------------------------------------------------------------------------------------


def copy_partial(source_i, source_f, r, target_i, target_f, t):
    for column in range(3 + INTEGERS):
        target_i[t, column] = source_i[r, column]
    for column in range(FLOATS):
        target_f[t, column] = source_f[r, column]


def match_events(
    st,
    groups,
    bits,
    follow,
    of_variable,
    accepting,
    stored_i,
    stored_f,
    kept_i,
    kept_f,
    ri,
    rf,
    found,
    oi,
    of,
    columns,
    ki,
    kf,
):
    """Goes on from where `st` says: 0 at the end, 1 for more room, 2 for too many partial matches, else an error.

    st: 0 group, 1 row, 2 partial matches, 3 matches, 4 kept, 5 the limit, 6 whether to keep, 7 whether the group's
    partial matches are loaded, 8 the row of the first partial match, 9 how much work to do before a pause (1).
    groups[g]: 0 first row, 1 row behind the last, 2 and 3 where its partial matches are stored and how many, 4 and 5
    the same for those kept, 6 its first row of all.
    """
    group, row, partial, matches, kept = st[0], st[1], st[2], st[3], st[4]
    limit, keep, loaded, base = st[5], st[6], st[7], st[8]
    work = st[9]
    variables, states = len(of_variable), len(follow) - 1
    first_states = follow[states]
    first_variables = 0
    for variable in range(variables):
        if of_variable[variable] & first_states:
            first_variables |= 1 << variable
    status = 0
    while group < len(groups):
        if loaded == 0:
            partial = groups[group, 3]
            if partial + 2 > len(ri):
                partial = 0
                status = 1
                break
            for r in range(partial):
                copy_partial(stored_i, stored_f, groups[group, 2] + r, ri, rf, r)
            row = groups[group, 0]
            loaded = 1
            base = 0
        end = groups[group, 1]
        while row < end:
            if partial == 0 and bits[row] & first_variables == 0:
                row += 1
                continue
            if base > 0 and (partial == 0 or base + partial + 2 > len(ri)):
                for r in range(partial):
                    copy_partial(ri, rf, base + r, ri, rf, r)
                base = 0
            if partial + 2 > len(ri) or matches + 1 > len(found) or work < 0:
                status = 1
                break
            work -= partial + 1
            if partial + 1 > limit:
                status = 2
                break
            top = base + partial
            ri[top, 0] = row
            ri[top, 1] = 0
            ri[top, 2] = -1
            for column in range(3, 3 + INTEGERS):
                ri[top, column] = 0
            for column in range(FLOATS):
                rf[top, column] = 0.0
            left = base
            complete = -1
            seen_mask = 0
            seen_next = 0
            for r in range(base, top + 1):
                next_states = first_states
                if r < top:
                    if ri[r, 1] != seen_mask:  # neighbours are mostly in the same states
                        seen_mask = ri[r, 1]
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
                    copy_partial(ri, rf, r, ri, rf, left)
                ri[left, 1] = reached
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
                found[matches, 0] = group
                found[matches, 1] = ri[complete, 0]
                found[matches, 2] = row
                copy_partial(ri, rf, complete, oi, of, matches)
                matches += 1
                partial = 0
            row += 1
        if status != 0:
            break
        if keep:
            if kept + partial > len(kept_i):
                status = 1
                break
            groups[group, 4] = kept
            groups[group, 5] = partial
            for r in range(partial):
                copy_partial(ri, rf, base + r, kept_i, kept_f, kept + r)
            kept += partial
        partial = 0
        loaded = 0
        group += 1
    st[0], st[1], st[2], st[3], st[4], st[7], st[8] = group, row, partial, matches, kept, loaded, base
    return status
