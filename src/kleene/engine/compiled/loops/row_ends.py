"""The ends of matches to rows in the order of the table: loops that are the same for every query.

A match is packed into one number: its length, and in the lower 32 bits the position of its first row.
"""

from kleene.engine.compiled.arrays.row_matches import *

# ------------------------------------------------------------------------------------------------------------------


def pack_matches(found, short_positions, short_last, packed):
    """Of each match that was found, the position of its last row, and the match packed.

    Row r of the search stands at short_positions[r] of the table. No match is empty.
    """
    for match in range(len(found)):
        start, length = found[match, ROW_MATCH_START], found[match, ROW_MATCH_LENGTH]
        short_last[match] = short_positions[start + length - 1]
        packed[match] = (length << 32) | short_positions[start]
    return len(found)


def unpack_slots(slots, first, from_rows, to_rows, match_lengths):
    """Where matches begin and end, and their lengths, in the order of the positions where they end.

    slots[p] is the match whose last row stands p behind `first`, packed, or 0. Gives back how many matches there are;
    behind them, the arrays that it writes have no meaning.
    """
    count = 0
    for place in range(len(slots)):
        from_rows[count] = slots[place] & 0xFFFFFFFF
        to_rows[count] = first + place
        match_lengths[count] = slots[place] >> 32
        count += 1 if slots[place] != 0 else 0  # without a jump: whether a match ends here cannot be foretold
    return count
