"""The backtrack algorithm (SASE+ 2008 §5.2.3), for comparison: a template, like `runs.py`.

One run at a time is carried through the events until it ends. Wherever it could go on in several ways the others are
postponed, and taken up again, the latest first, from the event where they were left. Nothing is shared: a run has its
own list of events, which is copied when it splits.
"""

from kleene.engine.compiled.arrays.backtrack_counters import *
from kleene.engine.compiled.arrays.groups import *
from kleene.engine.compiled.arrays.own_events import *
from kleene.engine.compiled.arrays.runs import *
from kleene.engine.compiled.arrays.statuses import *
from kleene.engine.compiled.loops.run_copies import clear_run, copy_run
from kleene.engine.compiled.loops.run_formulas import *

# ------------------------------------------------------------------------------------------------------------------


def backtrack(st, events, stack, matched, node, columns, ki, kf):
    """Goes on from where `st` says, and gives back a status. resume[r] is the row that run r goes on with."""
    groups, bits, times, positions = events
    ri, rf, resume, ni, nf, own = stack
    offsets, lengths, p, group_of = matched
    group, start, runs = st[BACKTRACK_GROUP], st[BACKTRACK_START], st[BACKTRACK_RUNS]
    matches, used = st[BACKTRACK_MATCHES], st[BACKTRACK_ROWS]
    limit, splits = st[BACKTRACK_RUN_LIMIT], st[BACKTRACK_SPLITS]
    work = st[BACKTRACK_WORK]
    status = DONE
    while group < len(groups):
        end = groups[group, GROUP_END]
        if start < 0:
            start = groups[group, GROUP_FRESH]
        while start < end:
            if runs == 0:
                if bits[start] & 1 == 0:
                    start += 1
                    continue
                clear_run(ri, rf, 0)
                ri[0, RUN_STATE] = -1
                ri[0, RUN_START] = start
                resume[0] = start
                runs = 1
                splits = 0
            while runs > 0:
                r = runs - 1
                row, state, first = resume[r], ri[r, RUN_STATE], ri[r, RUN_START]
                begin, count = ri[r, RUN_EVENTS], ri[r, RUN_LENGTH]
                if row >= end or (state >= 0 and not in_window(first, row, times, positions, ki, kf)):
                    runs -= 1
                    continue
                if runs + 3 > len(ri) or begin + 3 * count + 4 > len(own):
                    status = NEEDS_ROOM
                    break
                if matches + 3 > len(offsets) or used + 2 * count + 2 > len(p):
                    status = OUTPUT_FULL
                    break
                if splits > limit:
                    status = TOO_MANY_RUNS
                    break
                if work < 0:
                    status = PAUSED
                    break
                work -= 1
                fits = bits[row]
                is_kleene = state >= 0 and (KLEENE >> state) & 1 == 1
                taken, begun = 0, 0
                if is_kleene and (fits >> (2 * state + 1)) & 1:
                    taken = take_ok(state, r, row, ri, rf, node, node, node, columns, ki, kf)
                if state + 1 < COMPONENTS and (fits >> (2 * state + 2)) & 1 and ri[r, RUN_NEGATIONS] == 0:
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
                                ri[r, RUN_NEGATIONS] |= 1 << number
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
                                p[used + at] = own[begin + at, OWN_ROW]
                                lengths[matches, own[begin + at, OWN_COMPONENT]] += 1
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
                        place = ri[runs - 1, RUN_EVENTS] + ri[runs - 1, RUN_LENGTH]
                        splits += 1
                        for at in range(count):
                            own[place + at, OWN_ROW] = own[begin + at, OWN_ROW]
                            own[place + at, OWN_COMPONENT] = own[begin + at, OWN_COMPONENT]
                    own[place + count, OWN_ROW] = row
                    own[place + count, OWN_COMPONENT] = target
                    copy_run(ni, nf, move, ri, rf, runs)
                    ri[runs, RUN_STATE] = target
                    ri[runs, RUN_EVENTS] = place
                    ri[runs, RUN_LENGTH] = count + 1
                    ri[runs, RUN_START] = first
                    ri[runs, RUN_NEGATIONS] = 0
                    resume[runs] = row + 1
                    runs += 1
                    is_free = False
            if status != DONE:
                break
            start += 1
        if status != DONE:
            break
        group += 1
        start = -1
    st[BACKTRACK_GROUP], st[BACKTRACK_START], st[BACKTRACK_RUNS] = group, start, runs
    st[BACKTRACK_MATCHES], st[BACKTRACK_ROWS], st[BACKTRACK_SPLITS] = matches, used, splits
    return status
