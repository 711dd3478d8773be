"""Putting sequences in order, which have one event for each component: loops that are the same for every query.

A row of `sequences` is a sequence: the rows of its events.
"""

from kleene.engine.compiled.arrays.statuses import *

# ------------------------------------------------------------------------------------------------------------------


def comes_before(sequences, left, right):
    """Whether, of two sequences with the same first two events, the left one comes first."""
    for c in range(2, sequences.shape[1] - 1):
        if sequences[left, c] != sequences[right, c]:
            return sequences[left, c] < sequences[right, c]
    return True


def merge_sequences(sequences, begin, end, keys, order, spare_keys, spare):
    """Sorts the sequences from `begin` to `end` by merging: by their first two events, which are one number."""
    for at in range(begin, end):
        own = order[at]
        keys[at] = (int(sequences[own, 0]) << 32) | (int(sequences[own, 1]) if sequences.shape[1] > 2 else 0)
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
                    is_left = comes_before(sequences, order[a], order[b])
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


def count_sequences(sequences, c, begin, end, heights, order, spare, counts):
    """Sorts the sequences from `begin` to `end` by their events of one component, and gives back whether it could.

    It counts the events by their heights on their stack, which may differ too much for that.
    """
    low = high = heights[c, sequences[order[begin], c]]
    for at in range(begin, end):
        height = heights[c, sequences[order[at], c]]
        low = min(low, height)
        high = max(high, height)
    if high - low > 4 * (end - begin) + 16 or high - low + 2 > len(counts):
        return False
    for height in range(high - low + 2):
        counts[height] = 0
    for at in range(begin, end):
        counts[heights[c, sequences[order[at], c]] - low + 1] += 1
    for height in range(1, high - low + 2):
        counts[height] += counts[height - 1]
    for at in range(begin, end):
        height = heights[c, sequences[order[at], c]] - low
        spare[begin + counts[height]] = order[at]
        counts[height] += 1
    for at in range(begin, end):
        order[at] = spare[at]
    return True


def order_sequences(sequences, heights, counts, keys, order, spare_keys, spare, sorted_):
    """Sorts sequences that end together by their other events. All come in the order of their ends.

    The walk back finds late events first, and changes those of the first component fastest. Reversed, sequences are
    sorted by the last component but one. Then they are sorted by each component before it, one after the other.
    """
    count, width = sequences.shape
    begin = 0
    while begin < count:
        end = begin + 1
        while end < count and sequences[end, width - 1] == sequences[begin, width - 1]:
            end += 1
        for at in range(begin, end):
            order[at] = end - 1 - (at - begin)
        is_sorted = end - begin < 2 or width < 3
        if not is_sorted and heights.shape[1] > 0:
            is_sorted = True
            for back in range(width - 2):
                if is_sorted:
                    is_sorted = count_sequences(sequences, width - 3 - back, begin, end, heights, order, spare, counts)
        if not is_sorted:
            merge_sequences(sequences, begin, end, keys, order, spare_keys, spare)
        for at in range(begin, end):
            for c in range(width):
                sorted_[at, c] = sequences[order[at], c]
        begin = end
    return DONE
