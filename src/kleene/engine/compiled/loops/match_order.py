"""Putting matches in order: loops that are the same for every query."""

from kleene.engine.compiled.arrays.orders import *
from kleene.engine.compiled.arrays.statuses import *

# ------------------------------------------------------------------------------------------------------------------


def compare(left, right, mode, offsets, lengths, p, group_of):
    """Which of two matches comes first: a negative number if it is the left one."""
    left_first, left_last = p[offsets[left]], p[offsets[left + 1] - 1]
    right_first, right_last = p[offsets[right]], p[offsets[right + 1] - 1]
    left_count, right_count = offsets[left + 1] - offsets[left], offsets[right + 1] - offsets[right]
    if mode == BEST_OF_AN_END_FIRST and group_of[left] != group_of[right]:
        return -1 if group_of[left] < group_of[right] else 1
    if left_last != right_last:
        return -1 if left_last < right_last else 1
    if left_first != right_first:
        return -1 if (left_first < right_first) == (mode == OUTPUT_ORDER) else 1
    if mode == BEST_OF_AN_END_FIRST and left_count != right_count:
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


def order_matches(order, spare, mode, offsets, lengths, p, group_of):
    """Sorts the numbers of matches, by merging ever longer stretches that are in order."""
    count = len(order)
    width = 1
    while width < count:
        for begin in range(0, count, 2 * width):
            middle, end = min(begin + width, count), min(begin + 2 * width, count)
            a, b = begin, middle
            if middle >= end or compare(order[middle - 1], order[middle], mode, offsets, lengths, p, group_of) <= 0:
                for at in range(begin, end):
                    spare[at] = order[at]
                continue
            for at in range(begin, end):
                if b >= end or (a < middle and compare(order[a], order[b], mode, offsets, lengths, p, group_of) <= 0):
                    spare[at] = order[a]
                    a += 1
                else:
                    spare[at] = order[b]
                    b += 1
        for at in range(count):
            order[at] = spare[at]
        width *= 2
    return DONE


def place_matches(targets, offsets, p, row_order, out):
    """Copies matches to where they stand in the output, by their rows' positions in the table."""
    for match in range(len(targets)):
        to = targets[match]
        for at in range(offsets[match], offsets[match + 1]):
            out[to] = row_order[p[at]]
            to += 1
    return DONE
