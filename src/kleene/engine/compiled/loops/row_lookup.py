"""Rows of certain states in the matches of row patterns: loops that are the same for every query."""

from kleene.engine.compiled.arrays.statuses import *

# ------------------------------------------------------------------------------------------------------------------


def nth_rows(offsets, starts, states, is_wanted, from_last, offset, result):
    """For each match the row of the n-th of its wanted states, from its first or its last; -1 where there is none."""
    for match in range(len(starts)):
        result[match] = -1
        left = offset
        length = offsets[match + 1] - offsets[match]
        for at in range(length):
            place = length - 1 - at if from_last else at
            if is_wanted[states[offsets[match] + place]]:
                if left == 0:
                    result[match] = starts[match] + place
                    break
                left -= 1
    return DONE


def order_by_place(places, slots, order):
    """Puts the numbers of the places into order, if no two are the same, and gives back how many it put there.

    `slots` has room for each place that there may be, and is -1 everywhere.
    """
    for number in range(len(places)):
        if slots[places[number]] >= 0:
            return 0
        slots[places[number]] = number
    count = 0
    for place in range(len(slots)):
        if slots[place] >= 0:
            order[count] = slots[place]
            count += 1
    return count


def ends_in_order(starts, offsets, match_numbers, given, row_slots, from_rows, to_rows, match_lengths, ordered_numbers):
    """Where matches begin and end, by the positions where they end, with their lengths and numbers.

    `given` has the positions of rows, and `row_slots` is -1 for each position. Gives back how many matches there are,
    or -1 if one is empty or two end at one row.
    """
    for match in range(len(starts)):
        length = offsets[match + 1] - offsets[match]
        if length == 0 or row_slots[given[starts[match] + length - 1]] >= 0:
            return -1
        row_slots[given[starts[match] + length - 1]] = match
    count = 0
    for position in range(len(row_slots)):
        match = row_slots[position]
        if match >= 0:
            from_rows[count], to_rows[count] = given[starts[match]], position
            match_lengths[count], ordered_numbers[count] = offsets[match + 1] - offsets[match], match_numbers[match]
            count += 1
    return count
