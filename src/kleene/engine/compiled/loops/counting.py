"""Counting the matches of merged runs without making them: a loop that is the same for every query."""

from kleene.engine.compiled.arrays.completions import *
from kleene.engine.compiled.arrays.counted import *
from kleene.engine.compiled.arrays.nodes import *
from kleene.engine.compiled.arrays.statuses import *
from kleene.engine.compiled.arrays.windows import *
from kleene.engine.compiled.loops.merged_matches import near

# ------------------------------------------------------------------------------------------------------------------


def count_merged(node, count, vectors, starts, counts, done, totals, window):
    """Counts the matches of each completion in `totals`, without reading them out, and gives back a status."""
    used = 0
    for n in range(count):
        before = node[n, NODE_BEFORE]
        if before < 0:
            if used >= len(starts):
                return NEEDS_ROOM
            # Without a window nobody asks where a match began.
            starts[used] = node[n, NODE_ROW] if window[0] != NO_WINDOW else 0
            counts[used] = 1
            vectors[n, COUNTED_BEGIN], vectors[n, COUNTED_END] = used, used + 1
            used += 1
        else:
            vectors[n, COUNTED_BEGIN] = vectors[before, COUNTED_LIST_BEGIN]
            vectors[n, COUNTED_END] = vectors[before, COUNTED_LIST_END]
        after = node[n, NODE_NEXT]
        if after < 0:
            vectors[n, COUNTED_LIST_BEGIN] = vectors[n, COUNTED_BEGIN]
            vectors[n, COUNTED_LIST_END] = vectors[n, COUNTED_END]
            continue
        a, a_end = vectors[n, COUNTED_BEGIN], vectors[n, COUNTED_END]
        b, b_end = vectors[after, COUNTED_LIST_BEGIN], vectors[after, COUNTED_LIST_END]
        if used + (a_end - a) + (b_end - b) > len(starts):
            return NEEDS_ROOM
        row = node[n, NODE_ROW]
        vectors[n, COUNTED_LIST_BEGIN] = used
        while a < a_end or b < b_end:
            if b == b_end or (a < a_end and starts[a] < starts[b]):
                start, number = starts[a], counts[a]
                a += 1
            elif a == a_end or starts[b] < starts[a]:
                start, number = starts[b], counts[b]
                b += 1
            else:
                start, number = starts[a], counts[a] + counts[b]
                if number < 0 or number > MOST_COUNTED:
                    return TOO_LARGE
                a += 1
                b += 1
            if near(start, row, window):
                starts[used] = start
                counts[used] = number
                used += 1
        vectors[n, COUNTED_LIST_END] = used
    for d in range(len(done)):
        n, row = done[d, COMPLETION_NODE], done[d, COMPLETION_ROW]
        total = 0
        for at in range(vectors[n, COUNTED_BEGIN], vectors[n, COUNTED_END]):
            if near(starts[at], row, window):
                total += counts[at]
                if total > MOST_COUNTED:
                    return TOO_LARGE
        totals[d] = total
    return DONE


def reach_of_rows(begins, window, reach):
    """Writes for each row the last row of its partition that a match from it may come to."""
    for group in range(len(begins) - 1):
        last = begins[group]
        for row in range(begins[group], begins[group + 1]):
            if last < row:
                last = row
            while last + 1 < begins[group + 1] and near(row, last + 1, window):
                last += 1
            reach[row] = last
    return 0
