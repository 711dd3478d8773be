"""Sums over the rows of matches, from left to right as the interpreter makes them: the same for every query."""

from kleene.engine.compiled.arrays.statuses import *

# ------------------------------------------------------------------------------------------------------------------


def sums_of_floats(offsets, numbers, sums):
    """For each match the sum of its numbers; of none, what was there."""
    for match in range(len(sums)):
        first, last = offsets[match], offsets[match + 1]
        if first < last:
            total = numbers[first]
            for at in range(first + 1, last):
                total += numbers[at]
            sums[match] = total
    return DONE


def squares_of_distances(offsets, numbers, sums):
    """For each match the sum of the squares of its numbers' distances from their mean, step by step."""
    for match in range(len(sums)):
        mean = 0.0
        squares = 0.0
        for at in range(offsets[match], offsets[match + 1]):
            distance = numbers[at] - mean
            step = distance / (at - offsets[match] + 1)
            mean += step
            squares += distance * (distance - step)
        sums[match] = squares
    return DONE
