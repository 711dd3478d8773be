"""The loop that carries the runs of a SASE+ query through the events: a template.

What stands below the line of dashes becomes part of the generated module of every such query, between the query's
constants (their names are in capitals) and its formulas (`begin_ok`, `take_ok`, `complete_ok`, `update`, `in_window`,
`live_hash`, `live_equal`), which are imported here from where their meaning is written down. The columns of the arrays
are named in `arrays`.
"""

from kleene.engine.compiled.arrays.advance_counters import *
from kleene.engine.compiled.arrays.completions import *
from kleene.engine.compiled.arrays.edges import *
from kleene.engine.compiled.arrays.groups import *
from kleene.engine.compiled.arrays.nodes import *
from kleene.engine.compiled.arrays.runs import *
from kleene.engine.compiled.arrays.statuses import *
from kleene.engine.compiled.arrays.versions import *
from kleene.engine.compiled.loops.run_copies import clear_run, copy_run
from kleene.engine.compiled.loops.run_formulas import *

# ------------------------------------------------------------------------------------------------------------------


def awaited(state):
    """The bits of events that a run in this state can go on with: one more of its component, or the next begun."""
    return 3 << (2 * state + 1)


def new_version(version, versions, origin, prefix):
    """Adds a Dewey number (paper §5.1): the digits of `prefix`, then one that no other version has after them."""
    version[versions, VERSION_ORIGIN] = origin
    version[versions, VERSION_PREFIX] = prefix
    version[versions, VERSION_FOLLOWERS] = 0
    if prefix < 0:
        version[versions, VERSION_DIGIT] = versions
    else:
        version[versions, VERSION_DIGIT] = version[prefix, VERSION_FOLLOWERS]
        version[prefix, VERSION_FOLLOWERS] += 1
    return versions + 1


def merge(left, new, stamp, ri, rf, ni, nf, node, slots):
    """Adds the new runs to those that are left; a new run merges with its equal, if there is one (paper §5.2.2).

    Two runs are equal when they are in the same state and agree in all registers that a formula of this state or a
    later one reads. A merged run keeps both histories as a list, and the start of the younger.
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
        head = ni[n, RUN_HEAD]
        node[head, NODE_NEXT] = ri[found, RUN_HEAD]
        youngest = node[ri[found, RUN_HEAD], NODE_LIST_START]
        if youngest > node[head, NODE_LIST_START]:
            node[head, NODE_LIST_START] = youngest
        ri[found, RUN_HEAD] = head
        if ni[n, RUN_START] > ri[found, RUN_START]:
            ri[found, RUN_START] = ni[n, RUN_START]
    return left


def advance(st, events, all_runs, graph, current, columns, ki, kf):
    """Carries the runs through the events, from where `st` says, and gives back a status."""
    groups, bits, times, positions = events
    stored_i, stored_f, kept_i, kept_f, ri, rf, ni, nf = all_runs
    node, edge, version, done, slots = graph
    group, row, runs = st[ADVANCE_GROUP], st[ADVANCE_ROW], st[ADVANCE_RUNS]
    nodes, edges, versions = st[ADVANCE_NODES], st[ADVANCE_EDGES], st[ADVANCE_VERSIONS]
    matches, stamp, kept = st[ADVANCE_COMPLETIONS], st[ADVANCE_STAMP], st[ADVANCE_KEPT]
    run_limit, keep_runs, loaded = st[ADVANCE_RUN_LIMIT], st[ADVANCE_KEEPS], st[ADVANCE_LOADED]
    work = st[ADVANCE_WORK]
    status = DONE
    while group < len(groups):
        if loaded == 0:
            runs = groups[group, GROUP_STORED_COUNT]
            if runs + 1 > len(ri):
                status = NEEDS_ROOM
                runs = 0
                break
            for r in range(runs):
                copy_run(stored_i, stored_f, groups[group, GROUP_STORED] + r, ri, rf, r)
            row = groups[group, GROUP_FRESH]
            loaded = 1
        end = groups[group, GROUP_END]
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
                status = NEEDS_ROOM
                break
            if work < 0:
                status = PAUSED
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
            ri[runs, RUN_HEAD] = -1
            ri[runs, RUN_VERSION] = -1
            for r in range(runs + 1):
                # The last of them is a run that has not begun yet.
                is_fresh = r == runs
                state, start, is_kleene = -1, row, 0
                taken, begun = 0, 0
                if is_fresh:
                    begun = fits & 1
                else:
                    state, start = ri[r, RUN_STATE], ri[r, RUN_START]
                    if not in_window(start, row, times, positions, ki, kf):
                        continue
                    is_kleene = (KLEENE >> state) & 1
                    if is_kleene and (fits >> (2 * state + 1)) & 1:
                        taken = take_ok(state, r, row, ri, rf, node, edge, version, columns, ki, kf)
                        if taken < 0:
                            status = taken
                            break
                    if state + 1 < COMPONENTS and (fits >> (2 * state + 2)) & 1 and ri[r, RUN_NEGATIONS] == 0:
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
                    ni[new, RUN_STATE] = target
                    ni[new, RUN_START] = start
                    ni[new, RUN_NEGATIONS] = 0
                    if MERGE:
                        node[nodes, NODE_ROW] = row
                        node[nodes, NODE_COMPONENT] = target
                        before = ri[r, RUN_HEAD]
                        node[nodes, NODE_BEFORE] = before
                        node[nodes, NODE_NEXT] = -1
                        node[nodes, NODE_START] = start
                        node[nodes, NODE_LIST_START] = start
                        node[nodes, NODE_WAY_LENGTH] = 0
                        node[nodes, NODE_WAY_BEFORE] = -1
                        if before < 0:
                            node[nodes, NODE_WAY_LENGTH] = 1
                        elif node[before, NODE_NEXT] < 0 and node[before, NODE_WAY_LENGTH] > 0:
                            node[nodes, NODE_WAY_LENGTH] = node[before, NODE_WAY_LENGTH] + 1
                            is_same = node[before, NODE_COMPONENT] == target
                            node[nodes, NODE_WAY_BEFORE] = node[before, NODE_WAY_BEFORE] if is_same else before
                        ni[new, RUN_HEAD] = nodes
                        nodes += 1
                    else:
                        label = ri[r, RUN_VERSION]
                        if move == 1:
                            # The next state: one more digit, which counts how often the run has moved on.
                            versions = new_version(version, versions, label, label)
                            label = versions - 1
                        elif keeps:
                            # The same state, split: the last digit goes up.
                            versions = new_version(version, versions, label, version[label, VERSION_PREFIX])
                            label = versions - 1
                        if current[target] < 0:
                            node[nodes, NODE_ROW] = row
                            node[nodes, NODE_COMPONENT] = target
                            node[nodes, NODE_EDGES] = -1
                            node[nodes, NODE_START] = start
                            current[target] = nodes
                            nodes += 1
                        edge[edges, EDGE_VERSION] = label
                        edge[edges, EDGE_BEFORE] = ri[r, RUN_HEAD]
                        edge[edges, EDGE_NEXT] = node[current[target], NODE_EDGES]
                        node[current[target], NODE_EDGES] = edges
                        edges += 1
                        ni[new, RUN_HEAD] = current[target]
                        ni[new, RUN_VERSION] = label
                    if target == COMPONENTS - 1:
                        complete = 1
                        if (KLEENE >> target) & 1:
                            complete = complete_ok(target, new, row, ni, nf, node, edge, version, columns, ki, kf)
                            if complete < 0:
                                status = complete
                                break
                        if complete > 0:
                            done[matches, COMPLETION_NODE] = ni[new, RUN_HEAD]
                            done[matches, COMPLETION_VERSION] = ni[new, RUN_VERSION]
                            done[matches, COMPLETION_ROW] = row
                            done[matches, COMPLETION_GROUP] = group
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
                                ri[r, RUN_NEGATIONS] |= 1 << number
                            else:
                                gone = True
                    if gone:
                        continue
                    if left < r:
                        copy_run(ri, rf, r, ri, rf, left)
                    wanted |= awaited(state)
                    left += 1
            if status < 0:
                break
            if MERGE and new > 0 and left + new > 1:
                left = merge(left, new, stamp, ri, rf, ni, nf, node, slots)
                for r in range(left):
                    wanted |= awaited(ri[r, RUN_STATE])
            else:
                for r in range(new):
                    copy_run(ni, nf, r, ri, rf, left)
                    wanted |= awaited(ni[r, RUN_STATE])
                    left += 1
            if NEGATIONS > 0:
                wanted |= -(1 << NEGATION_BIT)
            runs = left
            row += 1
            if runs > run_limit:
                status = TOO_MANY_RUNS
                break
        if status != DONE:
            break
        if keep_runs:
            if kept + runs > len(kept_i):
                status = NEEDS_ROOM
                break
            groups[group, GROUP_KEPT] = kept
            groups[group, GROUP_KEPT_COUNT] = runs
            for r in range(runs):
                copy_run(ri, rf, r, kept_i, kept_f, kept + r)
            kept += runs
        runs = 0
        loaded = 0
        group += 1
    st[ADVANCE_GROUP], st[ADVANCE_ROW], st[ADVANCE_RUNS] = group, row, runs
    st[ADVANCE_NODES], st[ADVANCE_EDGES], st[ADVANCE_VERSIONS] = nodes, edges, versions
    st[ADVANCE_COMPLETIONS], st[ADVANCE_STAMP], st[ADVANCE_KEPT] = matches, stamp, kept
    st[ADVANCE_LOADED] = loaded
    return status
