"""Reading matches out of the buffer of merged runs: loops that are the same for every query."""

from kleene.engine.compiled.arrays.completions import *
from kleene.engine.compiled.arrays.expand_counters import *
from kleene.engine.compiled.arrays.nodes import *
from kleene.engine.compiled.arrays.statuses import *
from kleene.engine.compiled.arrays.windows import *

# ------------------------------------------------------------------------------------------------------------------


def near(start, row, window):
    """Whether a match from `start` may reach `row`."""
    kind, size, float_size, times, float_times, positions = window
    if kind == NO_WINDOW:
        return True
    if kind == WINDOW_IN_EVENTS:
        return positions[row] - positions[start] < size
    if kind == WINDOW_IN_WHOLE_TIME:
        return times[row] - times[start] < size
    return float_times[row] - float_times[start] < float_size


def first_near(n, row, node, window):
    """The first node of the list from n on through which a match may reach `row`, -1 if there is none."""
    while n >= 0 and not near(node[n, NODE_START], row, window):
        n = node[n, NODE_NEXT]
    return n


def write_match(trail, bounds, depth, lengths, match, p, rows):
    """Writes the rows on the trail as a match. The last event stands first on the trail."""
    for at in range(depth):
        p[rows + at] = trail[depth - 1 - at]
    for component in range(len(bounds)):
        before = bounds[component - 1] if component > 0 else depth
        lengths[match, component] = before - bounds[component]


def write_only_way(root, node, stack, written, lengths, match, p, rows):
    """Writes the one match that ends at the root, and gives back its length; -1 if the stack is too short.

    Matches that end close to each other begin alike. written[n] is where in `p` the way to n was written last, -1 if it
    was not. Up to the last node that was, rows are copied from there.
    """
    top = 0
    n = root
    while n >= 0 and written[n] < 0:
        if top >= len(stack):
            return -1
        stack[top] = n
        top += 1
        n = node[n, NODE_BEFORE]
    length = 0
    if n >= 0:
        length = node[n, NODE_WAY_LENGTH]
        begin = written[n]
        for at in range(length):
            p[rows + at] = p[begin + at]
    while top > 0:
        top -= 1
        n = stack[top]
        p[rows + length] = node[n, NODE_ROW]
        written[n] = rows
        length += 1
    n = root
    for component in range(lengths.shape[1] - 1, -1, -1):
        before = node[n, NODE_WAY_BEFORE]
        lengths[match, component] = node[n, NODE_WAY_LENGTH] - (node[before, NODE_WAY_LENGTH] if before >= 0 else 0)
        n = before
    return length


def expand_merged(st, done, count, node, window, stack, trail, bounds, written, offsets, lengths, p, origin):
    """Writes out matches from where `st` says, and gives back a status.

    trail[d] is the row of the node at depth d, bounds[c] the depth where component c is met on the way back.
    """
    at, depth, together = st[EXPAND_COMPLETION], st[EXPAND_DEPTH], st[EXPAND_TOGETHER]
    matches, rows = st[EXPAND_MATCHES], st[EXPAND_ROWS]
    status = DONE
    while at < count:
        row = done[at, COMPLETION_ROW]
        root = done[at, COMPLETION_NODE]
        length = node[root, NODE_WAY_LENGTH]
        if depth == 0 and length > 0:
            if matches + 1 >= len(offsets) or rows + length > len(p):
                status = OUTPUT_FULL
                break
            if write_only_way(root, node, stack, written, lengths, matches, p, rows) < 0:
                status = NEEDS_ROOM
                break
            rows += length
            origin[matches] = at
            matches += 1
            offsets[matches] = rows
            at += 1
            continue
        if depth == 0:
            stack[0] = root
            trail[0] = row
            bounds[len(bounds) - 1] = 0
            depth = 1
        while depth > 0:
            n = stack[depth - 1]
            before = node[n, NODE_BEFORE]
            if before >= 0:
                if depth == len(stack):
                    status = NEEDS_ROOM
                    break
                # A list of one is as young as the node that it leads to.
                if node[before, NODE_NEXT] >= 0:
                    before = first_near(before, row, node, window)
                    if before < 0:
                        status = CONTRADICTION
                        break
                stack[depth] = before
                trail[depth] = node[before, NODE_ROW]
                if node[before, NODE_COMPONENT] != node[n, NODE_COMPONENT]:
                    bounds[node[before, NODE_COMPONENT]] = depth
                depth += 1
                continue
            if matches + 1 >= len(offsets) or rows + depth > len(p):
                status = OUTPUT_FULL
                break
            write_match(trail, bounds, depth, lengths, matches, p, rows)
            rows += depth
            origin[matches] = at
            matches += 1
            offsets[matches] = rows
            together += 1
            if together > st[EXPAND_MOST]:
                status = TOO_MANY_MATCHES
                break
            while depth > 0:
                if depth == 1:
                    depth = 0
                    break
                after = node[stack[depth - 1], NODE_NEXT]
                if after >= 0 and not near(node[after, NODE_LIST_START], row, window):
                    after = -1
                after = first_near(after, row, node, window)
                if after >= 0:
                    # A list's nodes are of one component, so the bounds stay.
                    stack[depth - 1] = after
                    trail[depth - 1] = node[after, NODE_ROW]
                    break
                depth -= 1
        if status != DONE:
            break
        at += 1
        together = 0
    st[EXPAND_COMPLETION], st[EXPAND_DEPTH], st[EXPAND_TOGETHER] = at, depth, together
    st[EXPAND_MATCHES], st[EXPAND_ROWS] = matches, rows
    return status


def measure_merged(root, row, most, node, window, stack, totals):
    """Counts the matches that end at the root, and their rows, in `totals`; stops at the first beyond `most`."""
    stack[0] = root
    depth = 1
    while depth > 0:
        before = node[stack[depth - 1], NODE_BEFORE]
        if before >= 0:
            before = first_near(before, row, node, window)
            if before < 0:
                return CONTRADICTION
            stack[depth] = before
            depth += 1
            continue
        totals[TOTAL_MATCHES] += 1
        totals[TOTAL_ROWS] += depth
        if totals[TOTAL_MATCHES] > most:
            break
        while depth > 0:
            after = node[stack[depth - 1], NODE_NEXT] if depth > 1 else -1
            after = first_near(after, row, node, window)
            if after >= 0:
                stack[depth - 1] = after
                break
            depth -= 1
    return DONE


def piece_of(node, roots, row, seen, ids, stack, window):
    """The nodes of the matches that end at the roots, in `ids`; gives back how many. Those are marked in `seen`."""
    found = 0
    for root in roots:
        if seen[root]:
            continue
        seen[root] = 1
        stack[0] = root
        top = 1
        while top > 0:
            top -= 1
            n = stack[top]
            ids[found] = n
            found += 1
            other = node[n, NODE_BEFORE]
            while other >= 0:
                if seen[other] == 0 and near(node[other, NODE_START], row, window):
                    seen[other] = 1
                    stack[top] = other
                    top += 1
                other = node[other, NODE_NEXT]
    return found
