"""Loops over the match buffer that are the same for every query: reading matches out, counting, pruning, ordering.

The buffer of the merging algorithm is a graph of nodes, each an event selected for a component:

    node[n, 0] row   node[n, 1] component   node[n, 2] the list of nodes before it, -1 for a first event
    node[n, 3] the next node of the list that n begins   node[n, 4] the youngest first event of a match through n
    node[n, 5] the youngest first event of a match through any node of the list
    node[n, 6] how many events lead to n and with it, if there is one way only, else 0
    node[n, 7] in that case, the last node of the component before n's

In the buffer of the basic algorithm node[n, 2] is the first of n's edges, each with the version that it belongs to:

    edge[e, 0] version   edge[e, 1] the node before, -1 for none   edge[e, 2] the next edge of the same node
"""

from __future__ import annotations

# ------------------------------------------------------------------------------------------------------------------


def near(start, row, kind, size, float_size, times, float_times, positions):
    """Whether a match from `start` may reach `row`: kind 0 no window, 1 positions, 2 whole times, 3 float times."""
    if kind == 0:
        return True
    if kind == 1:
        return positions[row] - positions[start] < size
    if kind == 2:
        return times[row] - times[start] < size
    return float_times[row] - float_times[start] < float_size


def write_match(trail, bounds, depth, lengths, match, p, rows):
    """Writes the rows on the trail, of which the last event's stands first, as a match."""
    for at in range(depth):
        p[rows + at] = trail[depth - 1 - at]
    for component in range(len(bounds)):
        before = bounds[component - 1] if component > 0 else depth
        lengths[match, component] = before - bounds[component]
    return 0


def write_only_way(root, node, stack, written, lengths, match, p, rows):
    """Writes the one match that ends at the root, and gives back its length; -1 if the stack is too short.

    Matches that end close to each other begin alike. written[n] is where in `p` the way to n was written last, -1 if it
    was not: so far the rows are copied.
    """
    top = 0
    n = root
    while n >= 0 and written[n] < 0:
        if top >= len(stack):
            return -1
        stack[top] = n
        top += 1
        n = node[n, 2]
    length = 0
    if n >= 0:
        length = node[n, 6]
        begin = written[n]
        for at in range(length):
            p[rows + at] = p[begin + at]
    while top > 0:
        top -= 1
        n = stack[top]
        p[rows + length] = node[n, 0]
        written[n] = rows
        length += 1
    n = root
    for component in range(lengths.shape[1] - 1, -1, -1):
        before = node[n, 7]
        lengths[match, component] = node[n, 6] - (node[before, 6] if before >= 0 else 0)
        n = before
    return length


def expand_merged(
    st,
    done,
    count,
    node,
    kind,
    size,
    float_size,
    times,
    float_times,
    positions,
    stack,
    trail,
    bounds,
    written,
    offsets,
    lengths,
    p,
    origin,
):
    """Writes out matches from where `st` says: 0 when all are out, 1 if the stack is too short, 2 if `p` is full.

    Status 4 is for a buffer that contradicts itself, as a forged snapshot may.

    st: 0 completion, 1 depth of the stack, 2 matches written, 3 rows written, 4 matches of this completion, 5 the most
    matches of one completion, beyond which the status is 3.
    trail[d] is the row of the node at depth d, bounds[c] the depth where component c is met on the way back.
    """
    at, depth, matches, rows, together = st[0], st[1], st[2], st[3], st[4]
    status = 0
    while at < count:
        row = done[at, 2]
        if depth == 0 and node[done[at, 0], 6] > 0:
            length = node[done[at, 0], 6]
            if matches + 1 >= len(offsets) or rows + length > len(p):
                status = 2
                break
            if write_only_way(done[at, 0], node, stack, written, lengths, matches, p, rows) < 0:
                status = 1
                break
            rows += length
            origin[matches] = at
            matches += 1
            offsets[matches] = rows
            at += 1
            continue
        if depth == 0:
            stack[0] = done[at, 0]
            trail[0] = row
            bounds[len(bounds) - 1] = 0
            depth = 1
        while depth > 0:
            n = stack[depth - 1]
            before = node[n, 2]
            if before >= 0:
                if depth == len(stack):
                    status = 1
                    break
                # A list of one is as young as the node that it leads to.
                if node[before, 3] >= 0:
                    while before >= 0 and not near(
                        node[before, 4], row, kind, size, float_size, times, float_times, positions
                    ):
                        before = node[before, 3]
                    if before < 0:
                        status = 4
                        break
                stack[depth] = before
                trail[depth] = node[before, 0]
                bounds[node[before, 1]] = depth if node[before, 1] != node[n, 1] else bounds[node[n, 1]]
                depth += 1
                continue
            if matches + 1 >= len(offsets) or rows + depth > len(p):
                status = 2
                break
            write_match(trail, bounds, depth, lengths, matches, p, rows)
            rows += depth
            origin[matches] = at
            matches += 1
            offsets[matches] = rows
            together += 1
            if together > st[5]:
                status = 3
                break
            while depth > 0:
                if depth == 1:
                    depth = 0
                    break
                after = node[stack[depth - 1], 3]
                if after >= 0 and not near(node[after, 5], row, kind, size, float_size, times, float_times, positions):
                    after = -1
                while after >= 0 and not near(
                    node[after, 4], row, kind, size, float_size, times, float_times, positions
                ):
                    after = node[after, 3]
                if after >= 0:
                    # A list's nodes are of one component, so the bounds stay.
                    stack[depth - 1] = after
                    trail[depth - 1] = node[after, 0]
                    break
                depth -= 1
        if status != 0:
            break
        at += 1
        together = 0
    st[0], st[1], st[2], st[3], st[4] = at, depth, matches, rows, together
    return status


def measure_merged(root, row, most, node, kind, size, float_size, times, float_times, positions, stack, totals):
    """How many matches end at the root, and how many rows they have; counts no further than `most` and one more."""
    stack[0] = root
    depth = 1
    while depth > 0:
        before = node[stack[depth - 1], 2]
        if before >= 0:
            while before >= 0 and not near(node[before, 4], row, kind, size, float_size, times, float_times, positions):
                before = node[before, 3]
            if before < 0:
                return 4
            stack[depth] = before
            depth += 1
            continue
        totals[0] += 1
        totals[1] += depth
        if totals[0] > most:
            break
        while depth > 0:
            after = node[stack[depth - 1], 3] if depth > 1 else -1
            while after >= 0 and not near(node[after, 4], row, kind, size, float_size, times, float_times, positions):
                after = node[after, 3]
            if after >= 0:
                stack[depth - 1] = after
                break
            depth -= 1
    return 0


def compatible(n, label, node, edge, version):
    """The edge by which a run of the version came to the node, and its version.

    A run's own edge if it has one there; else that of the run it was split from or grew out of, and so on.
    """
    while label >= 0:
        e = node[n, 2]
        while e >= 0:
            if edge[e, 0] == label:
                return e, label
            e = edge[e, 2]
        label = version[label, 0]
    return -1, -1


def expand_versions(st, done, count, node, edge, version, stack, trail, bounds, offsets, lengths, p, origin):
    """The same for the versioned buffer: a completion is one match, found by going back along compatible versions."""
    at, matches, rows = st[0], st[2], st[3]
    status = 0
    while at < count:
        n, label = done[at, 0], done[at, 1]
        depth = 0
        component = len(bounds)
        while n >= 0:
            if depth == len(trail):
                status = 1
                break
            trail[depth] = node[n, 0]
            if node[n, 1] != component:
                component = node[n, 1]
                bounds[component] = depth
            depth += 1
            e, label = compatible(n, label, node, edge, version)
            if e < 0:  # no run came here: only in a snapshot that was forged
                status = 4
                break
            n = edge[e, 1]
        if status != 0:
            break
        if matches + 1 >= len(offsets) or rows + depth > len(p):
            status = 2
            break
        write_match(trail, bounds, depth, lengths, matches, p, rows)
        rows += depth
        origin[matches] = at
        matches += 1
        offsets[matches] = rows
        at += 1
    st[0], st[2], st[3] = at, matches, rows
    return status


def mark_merged(node, count, now, kind, size, float_size, times, float_times, positions):
    """Marks in `now` what the heads marked there reach, leaving out of lists what has left the window.

    now[n] is the row that n's partition has come to, -1 for what is not needed.
    """
    for n in range(count - 1, -1, -1):
        row = now[n]
        if row < 0:
            continue
        for link in range(2, 4):
            other = node[n, link]
            while other >= 0 and not near(node[other, 4], row, kind, size, float_size, times, float_times, positions):
                other = node[other, 3]
            node[n, link] = other
            if other >= 0 and now[other] < row:
                now[other] = row
    return 0


def mark_versions(heads, labels, node, edge, version, node_marks, edge_marks, version_marks):
    """Marks what the runs with these heads and versions selected."""
    for run in range(len(heads)):
        n, label = heads[run], labels[run]
        version_marks[label] = 1
        while n >= 0:
            e, label = compatible(n, label, node, edge, version)
            if e < 0 or edge_marks[e] == 1:
                break
            node_marks[n] = 1
            edge_marks[e] = 1
            version_marks[label] = 1
            n = edge[e, 1]
    return 0


def resolve(links, marks, resolved):
    """For each number, the first that is marked along its links, which lead to smaller numbers; -1 for none."""
    for n in range(len(links)):
        other = links[n]
        if other < 0 or marks[other] > 0:
            resolved[n] = other
        else:
            resolved[n] = resolved[other]
    return 0


def live_heads(heads, node, kind, size, float_size, times, float_times, positions):
    """Leaves out of the lists' beginnings what had left the window when they were last added to."""
    for run in range(len(heads)):
        n = heads[run]
        row = node[n, 0]
        while n >= 0 and not near(node[n, 4], row, kind, size, float_size, times, float_times, positions):
            n = node[n, 3]
        if n >= 0:
            heads[run] = n
    return 0


def pack_merged(node, count, now):
    """Moves what is marked to the front; `now` becomes the new numbers, -1 for what is gone."""
    kept = 0
    for n in range(count):
        if now[n] < 0:
            continue
        now[n] = kept
        for link in range(2, 4):
            other = node[n, link]
            node[kept, link] = now[other] if other >= 0 else -1
        node[kept, 0], node[kept, 1], node[kept, 4], node[kept, 5] = node[n, 0], node[n, 1], node[n, 4], node[n, 5]
        node[kept, 6] = node[n, 6]
        node[kept, 7] = now[node[n, 7]] if node[n, 7] >= 0 else -1
        kept += 1
    return kept


def piece_of(node, roots, row, seen, stamp, ids, stack, kind, size, float_size, times, float_times, positions):
    """The nodes of the matches that end at the roots, in `ids`; gives back how many, or -1 if there is no room.

    seen[n] is the stamp of the piece that n was last part of.
    """
    found = 0
    for root in range(len(roots)):
        top = 0
        stack[0] = roots[root]
        top = 1
        while top > 0:
            top -= 1
            n = stack[top]
            if seen[n] == stamp:
                continue
            seen[n] = stamp
            if found >= len(ids):
                return -1
            ids[found] = n
            found += 1
            other = node[n, 2]
            while other >= 0:
                if near(node[other, 4], row, kind, size, float_size, times, float_times, positions):
                    if top >= len(stack):
                        return -1
                    stack[top] = other
                    top += 1
                other = node[other, 3]
    return found


def count_merged(
    node,
    first,
    count,
    vectors,
    starts,
    counts,
    used,
    done,
    dones,
    totals,
    kind,
    size,
    float_size,
    times,
    float_times,
    positions,
):
    """The number of matches of each completion, without reading them out; -1 where it does not fit 64 bits.

    A node's matches are counted by their first event: vectors[n, 0:2] is the piece of `starts` and `counts` for n,
    vectors[n, 2:4] that for the list it begins. Nodes before `first` are counted already. Gives back how much of the
    pieces is used, or -1 if they are too short, or -2 if a count does not fit.
    """
    for n in range(first, count):
        before = node[n, 2]
        if before < 0:
            if used >= len(starts):
                return -1
            starts[used] = node[n, 0] if kind != 0 else 0  # without a window nobody asks where a match began
            counts[used] = 1
            vectors[n, 0], vectors[n, 1] = used, used + 1
            used += 1
        else:
            vectors[n, 0], vectors[n, 1] = vectors[before, 2], vectors[before, 3]
        after = node[n, 3]
        if after < 0:
            vectors[n, 2], vectors[n, 3] = vectors[n, 0], vectors[n, 1]
            continue
        a, a_end, b, b_end = vectors[n, 0], vectors[n, 1], vectors[after, 2], vectors[after, 3]
        if used + (a_end - a) + (b_end - b) > len(starts):
            return -1
        row = node[n, 0]
        vectors[n, 2] = used
        while a < a_end or b < b_end:
            if b == b_end or (a < a_end and starts[a] < starts[b]):
                start, number = starts[a], counts[a]
                a += 1
            elif a == a_end or starts[b] < starts[a]:
                start, number = starts[b], counts[b]
                b += 1
            else:
                start, number = starts[a], counts[a] + counts[b]
                if number < 0 or number > 4611686018427387904:
                    return -2
                a += 1
                b += 1
            if near(start, row, kind, size, float_size, times, float_times, positions):
                starts[used] = start
                counts[used] = number
                used += 1
        vectors[n, 3] = used
    for d in range(dones):
        n, row = done[d, 0], done[d, 2]
        total = 0
        for at in range(vectors[n, 0], vectors[n, 1]):
            if near(starts[at], row, kind, size, float_size, times, float_times, positions):
                total += counts[at]
                if total > 4611686018427387904:
                    return -2
        totals[d] = total
    return used


def compare(left, right, mode, offsets, lengths, p, groups):
    """Which of two matches comes first: a negative number if it is the left one.

    Mode 0 is the order of the output; mode 1 puts together those of a partition that end at one event, best first.
    """
    left_first, left_last = p[offsets[left]], p[offsets[left + 1] - 1]
    right_first, right_last = p[offsets[right]], p[offsets[right + 1] - 1]
    left_count, right_count = offsets[left + 1] - offsets[left], offsets[right + 1] - offsets[right]
    if mode == 1 and groups[left] != groups[right]:
        return -1 if groups[left] < groups[right] else 1
    if left_last != right_last:
        return -1 if left_last < right_last else 1
    if left_first != right_first:
        return -1 if (left_first < right_first) == (mode == 0) else 1
    if mode == 1 and left_count != right_count:
        return -1 if left_count < right_count else 1
    for at in range(min(left_count, right_count)):
        one, other = p[offsets[left] + at], p[offsets[right] + at]
        if one != other:
            return -1 if one < other else 1
    if left_count != right_count:
        return -1 if left_count < right_count else 1
    for component in range(lengths.shape[1]):
        one, other = lengths[left, component], lengths[right, component]
        if one != other:
            return -1 if one > other else 1
    return 0


def order_matches(order, spare, mode, offsets, lengths, p, groups):
    """Sorts the numbers of matches, by merging ever longer pieces that are in order."""
    count = len(order)
    width = 1
    while width < count:
        for begin in range(0, count, 2 * width):
            middle, end = min(begin + width, count), min(begin + 2 * width, count)
            a, b = begin, middle
            if middle >= end or compare(order[middle - 1], order[middle], mode, offsets, lengths, p, groups) <= 0:
                for at in range(begin, end):
                    spare[at] = order[at]
                continue
            for at in range(begin, end):
                if b >= end or (a < middle and compare(order[a], order[b], mode, offsets, lengths, p, groups) <= 0):
                    spare[at] = order[a]
                    a += 1
                else:
                    spare[at] = order[b]
                    b += 1
        for at in range(count):
            order[at] = spare[at]
        width *= 2
    return 0


def place_matches(targets, offsets, p, row_order, out):
    """Copies matches to where they stand in the output, by their rows' positions in the table."""
    for match in range(len(targets)):
        to = targets[match]
        for at in range(offsets[match], offsets[match + 1]):
            out[to] = row_order[p[at]]
            to += 1
    return 0


def nth_rows(offsets, starts, states, is_wanted, from_last, offset, found):
    """For each match the row of the n-th of its wanted states, from its first or its last; -1 where there is none."""
    for match in range(len(starts)):
        found[match] = -1
        left = offset
        length = offsets[match + 1] - offsets[match]
        for at in range(length):
            place = length - 1 - at if from_last else at
            if is_wanted[states[offsets[match] + place]]:
                if left == 0:
                    found[match] = starts[match] + place
                    break
                left -= 1
    return 0


def count_rows(offsets, states, is_wanted, found):
    """For each match, how many of its states are wanted."""
    for match in range(len(found)):
        found[match] = 0
        for at in range(offsets[match], offsets[match + 1]):
            found[match] += is_wanted[states[at]]
    return 0


def comes_before(found, left, right):
    """Whether, of two sequences with the same first two events, the left one comes first."""
    for c in range(2, found.shape[1] - 1):
        if found[left, c] != found[right, c]:
            return found[left, c] < found[right, c]
    return True


def merge_sequences(found, begin, end, keys, order, spare_keys, spare):
    """Sorts the sequences from `begin` to `end` by merging: by their first two events, which are one number."""
    for at in range(begin, end):
        own = order[at]
        keys[at] = (int(found[own, 0]) << 32) | (int(found[own, 1]) if found.shape[1] > 2 else 0)
    size = 1
    while size < end - begin:
        for low in range(begin, end, 2 * size):
            middle, high = min(low + size, end), min(low + 2 * size, end)
            a, b = low, middle
            for at in range(low, high):
                if b >= high:
                    is_left = True
                elif a >= middle:
                    is_left = False
                elif keys[a] == keys[b]:
                    is_left = comes_before(found, order[a], order[b])
                else:
                    is_left = keys[a] < keys[b]
                if is_left:
                    spare[at] = order[a]
                    spare_keys[at] = keys[a]
                    a += 1
                else:
                    spare[at] = order[b]
                    spare_keys[at] = keys[b]
                    b += 1
        for at in range(begin, end):
            order[at] = spare[at]
            keys[at] = spare_keys[at]
        size *= 2


def count_sequences(found, c, begin, end, heights, order, spare, counts):
    """Sorts by the events of one component, which are counted by their heights on their stack; False if too many."""
    low = high = heights[c, found[order[begin], c]]
    for at in range(begin, end):
        height = heights[c, found[order[at], c]]
        low = min(low, height)
        high = max(high, height)
    if high - low > 4 * (end - begin) + 16 or high - low + 2 > len(counts):
        return False
    for height in range(high - low + 2):
        counts[height] = 0
    for at in range(begin, end):
        counts[heights[c, found[order[at], c]] - low + 1] += 1
    for height in range(1, high - low + 2):
        counts[height] += counts[height - 1]
    for at in range(begin, end):
        height = heights[c, found[order[at], c]] - low
        spare[begin + counts[height]] = order[at]
        counts[height] += 1
    for at in range(begin, end):
        order[at] = spare[at]
    return True


def order_sequences(found, heights, counts, keys, order, spare_keys, spare, sorted_):
    """Sequences that end together in the order of their other events. They come in the order of their ends.

    The walk back finds late events first and changes those of the first component fastest. So the other way round they
    are sorted by the last component but one, and need to be sorted by those before it, one after the other.
    """
    count, width = found.shape
    begin = 0
    while begin < count:
        end = begin + 1
        while end < count and found[end, width - 1] == found[begin, width - 1]:
            end += 1
        for at in range(begin, end):
            order[at] = end - 1 - (at - begin)
        is_sorted = end - begin < 2 or width < 3
        if not is_sorted and heights.shape[1] > 0:
            is_sorted = True
            for back in range(width - 2):
                if is_sorted:
                    is_sorted = count_sequences(found, width - 3 - back, begin, end, heights, order, spare, counts)
        if not is_sorted:
            merge_sequences(found, begin, end, keys, order, spare_keys, spare)
        for at in range(begin, end):
            for c in range(width):
                sorted_[at, c] = found[order[at], c]
        begin = end
    return 0


def group_rows(codes, counts, order):
    """The rows of each partition together, in their order; rows of code -1 are in none."""
    total = 0
    for row in range(len(codes)):
        if codes[row] >= 0:
            counts[codes[row] + 1] += 1
    for group in range(1, len(counts)):
        counts[group] += counts[group - 1]
    for row in range(len(codes)):
        code = codes[row]
        if code >= 0:
            order[counts[code]] = row
            counts[code] += 1
            total += 1
    for group in range(len(counts) - 1, 0, -1):
        counts[group] = counts[group - 1]
    counts[0] = 0
    return total
