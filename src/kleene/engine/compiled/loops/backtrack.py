"""The backtrack algorithm (SASE+ 2008 §5.2.3), for comparison: a template, like `runs.py`.

One run at a time is carried through the events until it ends; wherever it could go on in several ways the others are
postponed, and taken up again, the latest first, from the event where they were left. Nothing is shared: a run has its
own list of events, which is copied when it splits.

A run is a row of `ri` and `rf`, as in `runs.py`, but for

    ri[r, 1] where its events begin in `own`   ri[r, 2] how many it has
"""

from __future__ import annotations

from kleene.engine.compiled.loops.run_formulas import (
    COMPONENTS,
    FIRST_REGISTER,
    FLOAT_REGISTERS,
    INTEGER_REGISTERS,
    KEEPS_ALWAYS,
    KEEPS_UNSELECTED,
    KLEENE,
    NEGATION_BIT,
    NEGATION_GAPS,
    NEGATIONS,
    begin_ok,
    complete_ok,
    in_window,
    take_ok,
    update,
)

# ------------------------------------------------------------------------------------------------------------------


def copy_run(source_i, source_f, r, target_i, target_f, t):
    for column in range(FIRST_REGISTER + INTEGER_REGISTERS):
        target_i[t, column] = source_i[r, column]
    for column in range(FLOAT_REGISTERS):
        target_f[t, column] = source_f[r, column]


def clear_run(ri, rf, r):
    """A run without events."""
    for column in range(FIRST_REGISTER + INTEGER_REGISTERS):
        ri[r, column] = 0
    for column in range(FLOAT_REGISTERS):
        rf[r, column] = 0.0


def backtrack(
    st,
    groups,
    bits,
    times,
    positions,
    ri,
    rf,
    resume,
    ni,
    nf,
    own,
    offsets,
    lengths,
    p,
    group_of,
    node,
    columns,
    ki,
    kf,
):
    """Goes on from where `st` says: 0 at the end, 1 for more room for runs, 2 for room for matches, 3 for the limit,
    4 to pause after so many steps as st[7] says.

    st: 0 group, 1 start row, 2 runs on the stack, 3 matches, 4 rows of matches, 5 the most runs, 6 runs split off since
    the start.
    own[e, 0] row and own[e, 1] component of a selected event.
    """
    group, start, runs, matches, used, limit, splits = st[0], st[1], st[2], st[3], st[4], st[5], st[6]
    work = st[7]
    status = 0
    while group < len(groups):
        end = groups[group, 1]
        if start < 0:
            start = groups[group, 0]
        while start < end:
            if runs == 0:
                if bits[start] & 1 == 0:
                    start += 1
                    continue
                clear_run(ri, rf, 0)
                ri[0, 0] = -1
                ri[0, 4] = start
                resume[0] = start
                runs = 1
                splits = 0
            while runs > 0:
                r = runs - 1
                row, state, first = resume[r], ri[r, 0], ri[r, 4]
                begin, count = ri[r, 1], ri[r, 2]
                if row >= end or (state >= 0 and not in_window(first, row, times, positions, ki, kf)):
                    runs -= 1
                    continue
                if runs + 3 > len(ri) or begin + 3 * count + 4 > len(own):
                    status = 1
                    break
                if matches + 3 > len(offsets) or used + 2 * count + 2 > len(p):
                    status = 2
                    break
                if splits > limit:
                    status = 3
                    break
                if work < 0:
                    status = 4
                    break
                work -= 1
                fits = bits[row]
                is_kleene = state >= 0 and (KLEENE >> state) & 1 == 1
                taken, begun = 0, 0
                if is_kleene and (fits >> (2 * state + 1)) & 1:
                    taken = take_ok(state, r, row, ri, rf, node, node, node, columns, ki, kf)
                if state + 1 < COMPONENTS and (fits >> (2 * state + 2)) & 1 and ri[r, 5] == 0:
                    begun = 1
                    if is_kleene:
                        begun = complete_ok(state, r, row, ri, rf, node, node, node, columns, ki, kf)
                    if begun > 0:
                        begun = begin_ok(state + 1, r, row, ri, rf, node, node, node, columns, ki, kf)
                if taken < 0 or begun < 0:
                    status = min(taken, begun)
                    break
                keeps = KEEPS_ALWAYS
                if KEEPS_UNSELECTED and not KEEPS_ALWAYS:
                    keeps = taken == 0 if is_kleene else begun == 0
                if state < 0:
                    keeps = False
                if keeps:
                    resume[r] = row + 1
                    for number in range(NEGATIONS):
                        if (fits >> (NEGATION_BIT + number)) & 1 and NEGATION_GAPS[number] == state + 1:
                            if is_kleene:
                                ri[r, 5] |= 1 << number
                            else:
                                keeps = False
                is_free = not keeps
                runs = r if is_free else runs
                for move in range(2):
                    if (taken if move == 0 else begun) == 0:
                        continue
                    target = state + move
                    problem = update(target, move, r, row, ri, rf, move, ni, nf, columns, ki, kf)
                    if problem < 0:
                        status = problem
                        break
                    if target == COMPONENTS - 1:
                        complete = 1
                        if (KLEENE >> target) & 1:
                            complete = complete_ok(target, move, row, ni, nf, node, node, node, columns, ki, kf)
                        if complete < 0:
                            status = complete
                            break
                        if complete > 0:
                            for component in range(COMPONENTS):
                                lengths[matches, component] = 0
                            for at in range(count):
                                p[used + at] = own[begin + at, 0]
                                lengths[matches, own[begin + at, 1]] += 1
                            p[used + count] = row
                            lengths[matches, target] += 1
                            used += count + 1
                            group_of[matches] = group
                            matches += 1
                            offsets[matches] = used
                if status < 0:
                    break
                for move in range(2):
                    target = state + move
                    if (taken if move == 0 else begun) == 0:
                        continue
                    if target == COMPONENTS - 1 and (KLEENE >> target) & 1 == 0:
                        continue
                    place = begin
                    if not is_free:
                        # Another run goes on with the events so far, so this one gets a list of its own.
                        place = ri[runs - 1, 1] + ri[runs - 1, 2]
                        splits += 1
                        for at in range(count):
                            own[place + at, 0] = own[begin + at, 0]
                            own[place + at, 1] = own[begin + at, 1]
                    own[place + count, 0] = row
                    own[place + count, 1] = target
                    copy_run(ni, nf, move, ri, rf, runs)
                    ri[runs, 0] = target
                    ri[runs, 1] = place
                    ri[runs, 2] = count + 1
                    ri[runs, 4] = first
                    ri[runs, 5] = 0
                    resume[runs] = row + 1
                    runs += 1
                    is_free = False
            if status != 0:
                break
            start += 1
        if status != 0:
            break
        group += 1
        start = -1
    st[0], st[1], st[2], st[3], st[4], st[6] = group, start, runs, matches, used, splits
    return status
