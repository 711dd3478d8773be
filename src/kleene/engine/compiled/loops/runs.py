"""The loop that carries the runs of a SASE+ query through the events: a template.

What stands below the line of dashes becomes part of the generated module of every such query, between the query's
constants (their names are in capitals) and its formulas (`begin_ok`, `take_ok`, `complete_ok`, `update`, `in_window`,
`live_hash`, `live_equal`), which are imported here from where their meaning is written down.

A run is a row of `ri` (whole numbers) and `rf` (floats):

    ri[r, 0] state: the component bound last      ri[r, 3] which registers are NULL, a bit each
    ri[r, 1] head: its last node in the buffer    ri[r, 4] the row of its first event (of a merged run, the youngest)
    ri[r, 2] version                              ri[r, 5] negations that stand between it and the next component
    ri[r, 6:], rf[r, :] registers: the values that later formulas read (V in the paper)
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
    MERGE,
    NEGATION_BIT,
    NEGATION_GAPS,
    NEGATIONS,
    begin_ok,
    complete_ok,
    in_window,
    live_equal,
    live_hash,
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
    ri[r, 1] = -1
    ri[r, 2] = -1


def new_version(version, versions, origin, prefix):
    """One more Dewey number (paper §5.1): the digits of `prefix`, then one that no other version behind it has.

    version[v, 0] the run that v was split from or grew out of: what v selected before, that one selected
    version[v, 1] the last digit   version[v, 2] how many digits follow v so far   version[v, 3] the digits before it
    """
    version[versions, 0] = origin
    version[versions, 3] = prefix
    version[versions, 2] = 0
    if prefix < 0:
        version[versions, 1] = versions
    else:
        version[versions, 1] = version[prefix, 2]
        version[prefix, 2] += 1
    return versions + 1


def merge(left, new, stamp, ri, rf, ni, nf, node, slots):
    """Adds the new runs to those that were left, each to its equal where there is one (paper §5.2.2).

    Two runs are equal when they are in the same state and agree in all registers that a formula of this state or a
    later one reads. A merged run keeps the list of both histories, and the start of the younger.
    """
    few = left + new <= 8
    size = len(slots)
    if not few:
        for r in range(left):
            at = live_hash(r, ri, rf) & (size - 1)
            while slots[at] >> 32 == stamp:
                at = (at + 1) & (size - 1)
            slots[at] = (stamp << 32) | r
    for n in range(new):
        found = -1
        if few:
            for r in range(left):
                if live_equal(r, ri, rf, n, ni, nf):
                    found = r
                    break
        else:
            at = live_hash(n, ni, nf) & (size - 1)
            while slots[at] >> 32 == stamp:
                r = slots[at] & 0xFFFFFFFF
                if live_equal(r, ri, rf, n, ni, nf):
                    found = r
                    break
                at = (at + 1) & (size - 1)
            if found < 0:
                slots[at] = (stamp << 32) | left
        if found < 0:
            copy_run(ni, nf, n, ri, rf, left)
            left += 1
            continue
        head = ni[n, 1]
        node[head, 3] = ri[found, 1]
        youngest = node[ri[found, 1], 5]
        if youngest > node[head, 5]:
            node[head, 5] = youngest
        ri[found, 1] = head
        if ni[n, 4] > ri[found, 4]:
            ri[found, 4] = ni[n, 4]
    return left


def advance(
    st,
    groups,
    bits,
    times,
    positions,
    stored_i,
    stored_f,
    kept_i,
    kept_f,
    ri,
    rf,
    ni,
    nf,
    node,
    edge,
    version,
    done,
    slots,
    current,
    columns,
    ki,
    kf,
):
    """Carries runs on from where `st` says, until the events end (0), room is needed (1), or an error (else).

    After so much work as st[12] says it pauses (4), so that whoever calls can look at the clock.

    st: 0 group, 1 event, 2 runs, 3 nodes, 4 edges, 5 versions, 6 matches, 7 stamp, 8 kept runs, 9 the run limit,
    10 whether runs are kept for events to come, 11 whether the group's runs are loaded.
    """
    group, row, runs = st[0], st[1], st[2]
    nodes, edges, versions, matches, stamp, kept = st[3], st[4], st[5], st[6], st[7], st[8]
    run_limit, keep_runs, loaded = st[9], st[10], st[11]
    work = st[12]
    status = 0
    while group < len(groups):
        if loaded == 0:
            runs = groups[group, 3]
            if runs + 1 > len(ri):
                status = 1
                runs = 0
                break
            for r in range(runs):
                copy_run(stored_i, stored_f, groups[group, 2] + r, ri, rf, r)
            row = groups[group, 0]
            loaded = 1
        end = groups[group, 1]
        wanted = 1 if runs == 0 else -1  # a bit for each formula that some run waits for; bit 0 begins a run
        while row < end:
            fits = bits[row]
            if fits & wanted == 0:
                if not KEEPS_UNSELECTED:
                    runs = 0
                    wanted = 1
                row += 1
                continue
            need = 2 * runs + 2
            if (
                nodes + need > len(node)
                or edges + need > len(edge)
                or versions + need > len(version)
                or matches + need > len(done)
                or runs + need > len(ri)
                or need > len(ni)
                or (MERGE and 2 * (runs + need) > len(slots))
            ):
                status = 1
                break
            if work < 0:
                status = 4
                break
            work -= need
            stamp += 1
            if not MERGE:
                for component in range(COMPONENTS):
                    current[component] = -1
            new = 0
            left = 0
            wanted = 1
            clear_run(ri, rf, runs)
            for r in range(runs + 1):
                # The last of them is a run that has not begun yet.
                is_fresh = r == runs
                state, start, is_kleene = -1, row, 0
                taken, begun = 0, 0
                if is_fresh:
                    begun = fits & 1
                else:
                    state, start = ri[r, 0], ri[r, 4]
                    if not in_window(start, row, times, positions, ki, kf):
                        continue
                    is_kleene = (KLEENE >> state) & 1
                    if is_kleene and (fits >> (2 * state + 1)) & 1:
                        taken = take_ok(state, r, row, ri, rf, node, edge, version, columns, ki, kf)
                        if taken < 0:
                            status = taken
                            break
                    if state + 1 < COMPONENTS and (fits >> (2 * state + 2)) & 1 and ri[r, 5] == 0:
                        begun = 1
                        if is_kleene:
                            begun = complete_ok(state, r, row, ri, rf, node, edge, version, columns, ki, kf)
                if begun > 0:
                    begun = begin_ok(state + 1, r, row, ri, rf, node, edge, version, columns, ki, kf)
                if begun < 0:
                    status = begun
                    break
                keeps = KEEPS_ALWAYS
                if KEEPS_UNSELECTED and not KEEPS_ALWAYS:
                    keeps = taken == 0 if is_kleene else begun == 0
                if is_fresh:
                    keeps = False
                for move in range(2):
                    if (taken if move == 0 else begun) == 0:
                        continue
                    target = state + move
                    problem = update(target, move, r, row, ri, rf, new, ni, nf, columns, ki, kf)
                    if problem < 0:
                        status = problem
                        break
                    ni[new, 0] = target
                    ni[new, 4] = start
                    ni[new, 5] = 0
                    if MERGE:
                        node[nodes, 0] = row
                        node[nodes, 1] = target
                        node[nodes, 2] = ri[r, 1]
                        node[nodes, 3] = -1
                        node[nodes, 4] = start
                        node[nodes, 5] = start
                        node[nodes, 6] = 0
                        node[nodes, 7] = -1
                        before = ri[r, 1]
                        if before < 0:
                            node[nodes, 6] = 1
                        elif node[before, 3] < 0 and node[before, 6] > 0:
                            node[nodes, 6] = node[before, 6] + 1
                            node[nodes, 7] = node[before, 7] if node[before, 1] == target else before
                        ni[new, 1] = nodes
                        nodes += 1
                    else:
                        label = ri[r, 2]
                        if move == 1:
                            # The next state: one more digit, which counts how often the run has moved on.
                            versions = new_version(version, versions, label, label)
                            label = versions - 1
                        elif keeps:
                            # The same state, split: the last digit goes up.
                            versions = new_version(version, versions, label, version[label, 3])
                            label = versions - 1
                        if current[target] < 0:
                            node[nodes, 0] = row
                            node[nodes, 1] = target
                            node[nodes, 2] = -1
                            node[nodes, 4] = start
                            current[target] = nodes
                            nodes += 1
                        edge[edges, 0] = label
                        edge[edges, 1] = ri[r, 1]
                        edge[edges, 2] = node[current[target], 2]
                        node[current[target], 2] = edges
                        edges += 1
                        ni[new, 1] = current[target]
                        ni[new, 2] = label
                    if target == COMPONENTS - 1:
                        complete = 1
                        if (KLEENE >> target) & 1:
                            complete = complete_ok(target, new, row, ni, nf, node, edge, version, columns, ki, kf)
                            if complete < 0:
                                status = complete
                                break
                        if complete > 0:
                            done[matches, 0] = ni[new, 1]
                            done[matches, 1] = ni[new, 2]
                            done[matches, 2] = row
                            done[matches, 3] = group
                            matches += 1
                    if target < COMPONENTS - 1 or (KLEENE >> target) & 1:
                        new += 1
                if status < 0:
                    break
                if keeps:
                    gone = False
                    for number in range(NEGATIONS):
                        if (fits >> (NEGATION_BIT + number)) & 1 and NEGATION_GAPS[number] == state + 1:
                            if is_kleene:
                                ri[r, 5] |= 1 << number
                            else:
                                gone = True
                    if gone:
                        continue
                    if left < r:
                        copy_run(ri, rf, r, ri, rf, left)
                    wanted |= (1 << (2 * state + 2)) | (1 << (2 * state + 1))
                    left += 1
            if status < 0:
                break
            if MERGE and new > 0 and left + new > 1:
                left = merge(left, new, stamp, ri, rf, ni, nf, node, slots)
                for r in range(left):
                    state = ri[r, 0]
                    wanted |= (1 << (2 * state + 2)) | (1 << (2 * state + 1))
            else:
                for r in range(new):
                    copy_run(ni, nf, r, ri, rf, left)
                    state = ni[r, 0]
                    wanted |= (1 << (2 * state + 2)) | (1 << (2 * state + 1))
                    left += 1
            if NEGATIONS > 0:
                wanted |= -(1 << NEGATION_BIT)
            runs = left
            row += 1
            if runs > run_limit:
                status = 2
                break
        if status != 0:
            break
        if keep_runs:
            if kept + runs > len(kept_i):
                status = 1
                break
            groups[group, 4] = kept
            groups[group, 5] = runs
            for r in range(runs):
                copy_run(ri, rf, r, kept_i, kept_f, kept + r)
            kept += runs
        runs = 0
        loaded = 0
        group += 1
    st[0], st[1], st[2] = group, row, runs
    st[3], st[4], st[5], st[6], st[7], st[8] = nodes, edges, versions, matches, stamp, kept
    st[11] = loaded
    return status
