"""Sums over the rows of matches, from left to right as the interpreter makes them: the same for every query."""

from kleene.engine.compiled.arrays.statuses import *

# ------------------------------------------------------------------------------------------------------------------


def running_sums(offsets, numbers, sums):
    """For each number the sum of those of its match up to it."""
    for match in range(len(offsets) - 1):
        first, last = offsets[match], offsets[match + 1]
        if first < last:
            total = numbers[first]
            sums[first] = total
            for at in range(first + 1, last):
                total += numbers[at]
                sums[at] = total
    return DONE


def running_totals(offsets, values, result, is_over):
    """For each whole number the sum of those of its match up to it, and whether it was too large on the way."""
    for match in range(len(offsets) - 1):
        total = 0
        over = 0
        for at in range(offsets[match], offsets[match + 1]):
            value = values[at]
            if value > 0:
                if total > 9223372036854775807 - value:
                    over = 1
            elif total < -9223372036854775807 - 1 - value:
                over = 1
            if over == 0:
                total += value
            result[at] = total
            is_over[at] = over
    return DONE


def running_squares(offsets, numbers, sums):
    """For each number, of those of its match up to it the sum of the squares of distances from their mean."""
    for match in range(len(offsets) - 1):
        mean = 0.0
        squares = 0.0
        for at in range(offsets[match], offsets[match + 1]):
            distance = numbers[at] - mean
            step = distance / (at - offsets[match] + 1)
            mean += step
            squares += distance * (distance - step)
            sums[at] = squares
    return DONE


def running_best(offsets, keys, result):
    """For each key the number of the largest one of its match up to it, the first of equals."""
    for match in range(len(offsets) - 1):
        first = offsets[match]
        best = first
        for at in range(first, offsets[match + 1]):
            if keys[at] > keys[best]:
                best = at
            result[at] = best
    return DONE
