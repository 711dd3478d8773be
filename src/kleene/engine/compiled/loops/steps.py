"""The loop that carries the runs of a pattern in steps through the events: a template.

What stands below the line of dashes becomes part of the generated module of every such pattern, between its constants
and its formulas, which are imported here from where their meaning is written down. The automaton comes as tables.
"""

from kleene.engine.compiled.arrays.statuses import *
from kleene.engine.compiled.arrays.step_counters import *
from kleene.engine.compiled.arrays.step_edges import *
from kleene.engine.compiled.arrays.step_groups import *
from kleene.engine.compiled.arrays.step_moves import *
from kleene.engine.compiled.arrays.step_nodes import *
from kleene.engine.compiled.arrays.step_runs import *
from kleene.engine.compiled.arrays.step_states import *
from kleene.engine.compiled.loops.run_copies import clear_run, copy_run
from kleene.engine.compiled.loops.step_formulas import *

# ------------------------------------------------------------------------------------------------------------------


def slot_of(one, other, stamp, slots):
    """The place of a pair of numbers among those with the stamp: where it stands, or where it would."""
    size = len(slots) // 4
    at = ((one * 31 + other) * 2654435761 & 0x7FFFFFFFFFFF) >> 7
    at = at & (size - 1)
    while slots[4 * at] == stamp and (slots[4 * at + 1] != one or slots[4 * at + 2] != other):
        at = (at + 1) & (size - 1)
    return 4 * at


def is_known(one, other, stamp, slots):
    """Whether the pair came before with the stamp; from now on it has."""
    at = slot_of(one, other, stamp, slots)
    if slots[at] == stamp:
        return True
    slots[at], slots[at + 1], slots[at + 2] = stamp, one, other
    return False


def holds(e, sat, last, row, edge, times, ki, kf):
    """Whether the formula of an edge holds, for an event that satisfies these atoms."""
    if sat & edge[e, STEP_EDGE_MUST] != edge[e, STEP_EDGE_MUST] or sat & edge[e, STEP_EDGE_NOT] != 0:
        return False
    if not HAS_WAITS:
        return True
    wait = edge[e, STEP_EDGE_WAIT]
    return wait < 0 or last < 0 or is_soon(wait, last, row, times, ki, kf)


def reaches_final(state, sat, last, row, edge, state_table, times, marks, ki, kf):
    """Whether proceed edges lead to the final state; `marks` is room for a stack, behind that of the caller."""
    if state_table[state, STEP_STATE_ENDS] == 0:
        return False
    depth = len(marks) // 2
    marks[depth] = state
    depth += 1
    while depth > len(marks) // 2:
        depth -= 1
        own = marks[depth]
        if own == FINAL:
            return True
        for e in range(state_table[own, STEP_STATE_EDGES], state_table[own, STEP_STATE_END]):
            if edge[e, STEP_EDGE_MOVE] == STEP_PROCEEDS and holds(e, sat, last, row, edge, times, ki, kf):
                marks[depth] = edge[e, STEP_EDGE_TARGET]
                depth += 1
    return False


def satisfied(fits, needs, run, row, ri, rf, derived, columns, ki, kf):
    """The atoms that the event satisfies, of those that are needed; or the number of an error, which is negative."""
    sat = fits & ALONE
    open_ = fits & needs & ~ALONE & ~ALWAYS
    atom = 0
    while open_ != 0:
        if open_ & 1 == 1:
            found = atom_ok(atom, run, row, ri, rf, columns, ki, kf)
            if found < 0:
                return found
            if found == 1:
                sat |= 1 << atom
        open_ >>= 1
        atom += 1
    for number in range(DERIVED):
        must, never = derived[2 * number], derived[2 * number + 1]
        if sat & must == must and sat & never == 0:
            sat |= 1 << (FIRST_DERIVED + number)
    return sat


def first_kept(head, start, node):
    """The first row that what goes on after the match may begin with."""
    if SKIPS_TO == -1:
        return start + 1
    if SKIPS_TO == -2:
        return node[head, STEP_NODE_ROW] + 1
    found = -1
    while head >= 0:
        if node[head, STEP_NODE_STEP] == SKIPS_TO:
            found = node[head, STEP_NODE_ROW]
            if SKIPS_TO_LAST:
                break
        head = node[head, STEP_NODE_BEFORE]
    return found


def give_out(runs, waits, matches, group, ri, rf, waiting, done, node):
    """Gives out the matches that no older run can forestall; how many runs, waiting matches and matches there are."""
    for n in range(1, waits):  # by their first events; those with the same one stay in order
        head, start = waiting[n, 0], waiting[n, 1]
        m = n - 1
        while m >= 0 and waiting[m, 1] > start:
            waiting[m + 1, 0], waiting[m + 1, 1] = waiting[m, 0], waiting[m, 1]
            m -= 1
        waiting[m + 1, 0], waiting[m + 1, 1] = head, start
    while waits > 0:
        head, start = waiting[0, 0], waiting[0, 1]
        if runs > 0 and ri[0, STEP_RUN_START] < start:
            break
        done[matches, 0], done[matches, 1] = head, group
        matches += 1
        least = first_kept(head, start, node)
        left = 0
        for n in range(1, waits):
            if waiting[n, 1] >= least:
                waiting[left, 0], waiting[left, 1] = waiting[n, 0], waiting[n, 1]
                left += 1
        waits = left
        left = 0
        for r in range(runs):
            if ri[r, STEP_RUN_START] >= least:
                if left < r:
                    copy_run(ri, rf, r, ri, rf, left)
                left += 1
        runs = left
    return runs, waits, matches


def advance_steps(st, events, all_runs, graph, machine, columns, ki, kf):
    """Carries the runs through the events, from where `st` says, and gives back a status."""
    groups, bits, times = events
    stored_i, stored_f, kept_i, kept_f, ri, rf, ni, nf = all_runs
    node, done, waiting, slots, marks = graph
    edge, state_table, derived, open_after, plan_table, move_table = machine
    group, row, runs = st[STEPS_GROUP], st[STEPS_ROW], st[STEPS_RUNS]
    nodes, matches, waits, kept = st[STEPS_NODES], st[STEPS_MATCHES], st[STEPS_WAITING], st[STEPS_KEPT]
    loaded, stamp, work, run_limit = st[STEPS_LOADED], st[STEPS_STAMP], st[STEPS_WORK], st[STEPS_RUN_LIMIT]
    status = DONE
    while group < len(groups):
        if loaded == 0:
            stored = groups[group, STEP_GROUP_STORED_COUNT]
            if stored + 1 > len(ri) or stored + 1 > len(waiting):
                status = NEEDS_ROOM
                break
            runs, waits = 0, 0
            for r in range(groups[group, STEP_GROUP_STORED], groups[group, STEP_GROUP_STORED] + stored):
                if stored_i[r, STEP_RUN_STATE] < 0:
                    waiting[waits, 0], waiting[waits, 1] = stored_i[r, STEP_RUN_HEAD], stored_i[r, STEP_RUN_START]
                    waits += 1
                else:
                    copy_run(stored_i, stored_f, r, ri, rf, runs)
                    runs += 1
            row = groups[group, STEP_GROUP_FRESH]
            loaded = 1
        end = groups[group, STEP_GROUP_END]
        before = groups[group, STEP_GROUP_FRESH] - groups[group, STEP_GROUP_PLACE]  # place 0 of the partition
        wanted = BEGINS if runs == 0 else -1
        while row < end:
            fits = bits[row]
            if fits & wanted == 0:
                row += 1
                continue
            need = (runs + 1) * MOST_MOVES
            if (
                nodes + need > len(node)
                or matches + waits + need + runs > len(done)
                or waits + need + runs > len(waiting)
                or runs + need > len(ri)
                or need > len(ni)
                or (HAS_GROUPS and 16 * need > len(slots))
            ):
                status = NEEDS_ROOM
                break
            if work < 0:
                status = PAUSED
                break
            work -= runs + 1
            stamp += 1
            place = row - before
            if KEEPS_ORDER or ENDS_IN_TIME:
                # Time moves on: what it ends is a match, or nothing, before the event is tried.
                left = 0
                for r in range(runs):
                    state, head = ri[r, STEP_RUN_STATE], ri[r, STEP_RUN_HEAD]
                    wait = state_table[state, STEP_STATE_WAIT]
                    ends = is_over(ri[r, STEP_RUN_START], ri[r, STEP_RUN_PLACE], row, place, times, ki, kf)
                    if not ends and wait >= 0:
                        ends = not is_soon(wait, node[head, STEP_NODE_ROW], row, times, ki, kf)
                    if not ends:
                        if left < r:
                            copy_run(ri, rf, r, ri, rf, left)
                        left += 1
                    elif state_table[state, STEP_STATE_PENDING] == 1:
                        if HAS_GROUPS and is_known(-2, head, stamp, slots):
                            continue
                        if KEEPS_ORDER:
                            waiting[waits, 0], waiting[waits, 1] = head, ri[r, STEP_RUN_START]
                            waits += 1
                        else:
                            done[matches, 0], done[matches, 1] = head, group
                            matches += 1
                runs = left
                if KEEPS_ORDER and waits > 0:
                    runs, waits, matches = give_out(runs, waits, matches, group, ri, rf, waiting, done, node)
            # Runs that do not change stay in `ri`, and new ones come behind them. Where their order matters, only those
            # before the first change stay.
            new, left, has_changed = 0, 0, False
            wanted = BEGINS
            clear_run(ri, rf, runs)
            ri[runs, STEP_RUN_HEAD], ri[runs, STEP_RUN_START], ri[runs, STEP_RUN_PLACE] = -1, row, place
            ri[runs, STEP_RUN_NULLS] = ALL_NULL
            for r in range(runs + 1):
                # The last of them is the run that may begin here.
                state, head, start = ri[r, STEP_RUN_STATE], ri[r, STEP_RUN_HEAD], ri[r, STEP_RUN_START]
                loud = BEGINS if head < 0 else state_table[state, STEP_STATE_LOUD]
                closing, last = 0, -1
                if head >= 0:
                    if HAS_WAITS:
                        last = node[head, STEP_NODE_ROW]
                    if HAS_ABSENCES:
                        closing = open_after[node[head, STEP_NODE_STEP]]
                    if not (KEEPS_ORDER or ENDS_IN_TIME):
                        wait = state_table[state, STEP_STATE_WAIT] if HAS_WAITS else -1
                        if is_over(start, ri[r, STEP_RUN_PLACE], row, place, times, ki, kf) or (
                            wait >= 0 and not is_soon(wait, last, row, times, ki, kf)
                        ):
                            continue
                if fits & (loud | closing) == 0:
                    if head < 0 or (HAS_GROUPS and is_known(state, head, stamp, slots)):
                        has_changed = True
                        continue
                    wanted |= loud | closing
                    if KEEPS_ORDER and has_changed:
                        copy_run(ri, rf, r, ni, nf, new)
                        new += 1
                        continue
                    if left < r:
                        copy_run(ri, rf, r, ri, rf, left)
                    left += 1
                    continue
                sat = satisfied(
                    fits, state_table[state, STEP_STATE_NEEDS] | closing, r, row, ri, rf, derived, columns, ki, kf
                )
                if sat < 0:
                    status = sat
                    break
                is_hit = sat & closing != 0
                # First all moves are found, since one of them may show that the run ends.
                first_move, last_move = 0, 0
                if HAS_PLANS:
                    first_move = plan_table[state * PLAN_WIDTH + sat, 0]
                    last_move = plan_table[state * PLAN_WIDTH + sat, 1]
                else:
                    marks[0] = state
                    depth = 1
                    while depth > 0:
                        depth -= 1
                        own = marks[depth]
                        if own == STOP:
                            is_hit = True
                        for e in range(state_table[own, STEP_STATE_EDGES], state_table[own, STEP_STATE_END]):
                            if not holds(e, sat, last, row, edge, times, ki, kf):
                                continue
                            if edge[e, STEP_EDGE_MOVE] == STEP_PROCEEDS:
                                marks[depth] = edge[e, STEP_EDGE_TARGET]
                                depth += 1
                                continue
                            move_table[last_move, STEP_MOVE_EDGE] = e
                            move_table[last_move, STEP_MOVE_STATE] = own
                            last_move += 1
                first_new, stays = new, False
                for m in range(first_move, last_move):
                    e, own = move_table[m, STEP_MOVE_EDGE], move_table[m, STEP_MOVE_STATE]
                    if HAS_PLANS and e < 0:
                        is_hit = True
                        continue
                    target = edge[e, STEP_EDGE_TARGET]
                    if edge[e, STEP_EDGE_MOVE] == STEP_IGNORES:
                        if head < 0:
                            continue
                        if target == FINAL:
                            if not (HAS_GROUPS and is_known(-2, head, stamp, slots)):
                                waiting[waits, 0], waiting[waits, 1] = head, start
                                waits += 1
                            continue
                        if is_hit or (HAS_GROUPS and is_known(target, head, stamp, slots)):
                            continue
                        if target == state and not stays:
                            if not KEEPS_ORDER or (not has_changed and new == first_new):
                                stays = True
                                continue
                        copy_run(ri, rf, r, ni, nf, new)
                        ni[new, STEP_RUN_STATE] = target
                        new += 1
                        continue
                    if HAS_PLANS:
                        completes = move_table[m, STEP_MOVE_COMPLETES] == 1
                    else:
                        completes = reaches_final(target, sat, last, row, edge, state_table, times, marks, ki, kf)
                    if is_hit and not completes:
                        continue
                    step = state_table[own, STEP_STATE_STEP]
                    made = nodes
                    if HAS_GROUPS:
                        at = slot_of(-3 - step, head, stamp, slots)
                        if slots[at] == stamp:
                            made = slots[at + 3]
                        else:
                            slots[at], slots[at + 1], slots[at + 2], slots[at + 3] = stamp, -3 - step, head, nodes
                    if made == nodes:
                        node[nodes, STEP_NODE_ROW] = row
                        node[nodes, STEP_NODE_STEP] = step
                        node[nodes, STEP_NODE_BEFORE] = head
                        node[nodes, STEP_NODE_LENGTH] = 1 if head < 0 else node[head, STEP_NODE_LENGTH] + 1
                        nodes += 1
                    if completes and not (HAS_GROUPS and is_known(-2, made, stamp, slots)):
                        waiting[waits, 0], waiting[waits, 1] = made, start
                        waits += 1
                    if is_hit or target == FINAL or (HAS_GROUPS and is_known(target, made, stamp, slots)):
                        continue
                    problem = update(step, r, row, ri, rf, new, ni, nf, columns, ki, kf)
                    if problem < 0:
                        status = problem
                        break
                    ni[new, STEP_RUN_STATE] = target
                    ni[new, STEP_RUN_HEAD] = made
                    ni[new, STEP_RUN_START] = start
                    ni[new, STEP_RUN_PLACE] = ri[r, STEP_RUN_PLACE]
                    new += 1
                if status < 0:
                    break
                if not stays or new > first_new:
                    has_changed = True
                if stays:
                    wanted |= loud | closing
                    if left < r:
                        copy_run(ri, rf, r, ri, rf, left)
                    left += 1
                for n in range(first_new, new):
                    wanted |= state_table[ni[n, STEP_RUN_STATE], STEP_STATE_LOUD]
                    if HAS_ABSENCES:
                        wanted |= open_after[node[ni[n, STEP_RUN_HEAD], STEP_NODE_STEP]]
            if status < 0:
                break
            for n in range(new):
                copy_run(ni, nf, n, ri, rf, left + n)
            runs = left + new
            row += 1
            if KEEPS_ORDER:
                if waits > 0:
                    runs, waits, matches = give_out(runs, waits, matches, group, ri, rf, waiting, done, node)
            else:
                for n in range(waits):
                    done[matches, 0], done[matches, 1] = waiting[n, 0], group
                    matches += 1
                waits = 0
            if runs > run_limit:
                status = TOO_MANY_RUNS
                break
        if status != DONE:
            break
        if st[STEPS_KEEPS] == 1 or ENDS_IN_TIME or waits > 0:
            if kept + runs + waits > len(kept_i):
                status = NEEDS_ROOM
                break
            groups[group, STEP_GROUP_KEPT] = kept
            groups[group, STEP_GROUP_KEPT_COUNT] = runs + waits
            for r in range(runs):
                copy_run(ri, rf, r, kept_i, kept_f, kept + r)
            kept += runs
            for n in range(waits):
                clear_run(kept_i, kept_f, kept)
                kept_i[kept, STEP_RUN_STATE] = -1
                kept_i[kept, STEP_RUN_HEAD], kept_i[kept, STEP_RUN_START] = waiting[n, 0], waiting[n, 1]
                kept += 1
        runs, waits, loaded = 0, 0, 0
        group += 1
    st[STEPS_GROUP], st[STEPS_ROW], st[STEPS_RUNS] = group, row, runs
    st[STEPS_NODES], st[STEPS_MATCHES], st[STEPS_WAITING], st[STEPS_KEPT] = nodes, matches, waits, kept
    st[STEPS_LOADED], st[STEPS_STAMP] = loaded, stamp
    return status


def read_out(count, done, node, offsets, lengths, rows, steps):
    """The events of so many matches, each in their order; `offsets` are known."""
    for m in range(count):
        head, at = done[m, 0], offsets[m + 1] - 1
        while head >= 0:
            step = node[head, STEP_NODE_STEP]
            lengths[m, step] += 1
            rows[at] = node[head, STEP_NODE_ROW]
            if len(steps) > 0:
                steps[at] = step
            head = node[head, STEP_NODE_BEFORE]
            at -= 1
    return 0


def drop_unreachable(nodes, roots, node, places):
    """Keeps the nodes that a root leads to, in their order; roots and nodes then have new numbers."""
    for n in range(nodes):
        places[n] = -1
    for head in roots:
        while head >= 0 and places[head] < 0:
            places[head] = 0
            head = node[head, STEP_NODE_BEFORE]
    left = 0
    for n in range(nodes):
        if places[n] == 0:
            before = node[n, STEP_NODE_BEFORE]
            node[left, STEP_NODE_ROW], node[left, STEP_NODE_STEP] = node[n, STEP_NODE_ROW], node[n, STEP_NODE_STEP]
            node[left, STEP_NODE_BEFORE] = places[before] if before >= 0 else -1
            node[left, STEP_NODE_LENGTH] = node[n, STEP_NODE_LENGTH]
            places[n] = left
            left += 1
    for number in range(len(roots)):
        if roots[number] >= 0:
            roots[number] = places[roots[number]]
    return left


def replay(count, offsets, rows, steps, stored_i, stored_f, ni, nf, columns, ki, kf):
    """Makes the registers of stored runs anew, from the events that they have bound."""
    for r in range(count):
        for at in range(offsets[r], offsets[r + 1]):
            problem = update(steps[at], r, rows[at], stored_i, stored_f, 0, ni, nf, columns, ki, kf)
            if problem < 0:
                return problem
            state, head = stored_i[r, STEP_RUN_STATE], stored_i[r, STEP_RUN_HEAD]
            start, place = stored_i[r, STEP_RUN_START], stored_i[r, STEP_RUN_PLACE]
            copy_run(ni, nf, 0, stored_i, stored_f, r)
            stored_i[r, STEP_RUN_STATE], stored_i[r, STEP_RUN_HEAD] = state, head
            stored_i[r, STEP_RUN_START], stored_i[r, STEP_RUN_PLACE] = start, place
    return 0
