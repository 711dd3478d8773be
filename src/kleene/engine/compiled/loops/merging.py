"""Rows of several parts, each in order, to one order: loops that are the same for every query.

They go through the rows of one part from `from_row` to before `to_row`, which belong to one stretch of places.
"""

# ------------------------------------------------------------------------------------------------------------------


def count_places(short_places, from_row, to_row, first_place, counts):
    """counts[p + 1] grows by the number of rows that belong to place p, counted from the first place."""
    for row in range(from_row, to_row):
        counts[short_places[row] - first_place + 1] += 1
    return to_row


def sum_counts(counts, first):
    """counts[p] becomes the number of rows before place p; there are `first` before all of them."""
    counts[0] = first
    for place in range(1, len(counts)):
        counts[place] += counts[place - 1]
    return len(counts)


def merged_places(short_places, from_row, to_row, first_place, counts, new_places):
    """Where each row goes; rows of one place keep their order."""
    for row in range(from_row, to_row):
        place = short_places[row] - first_place
        new_places[row] = counts[place]
        counts[place] += 1
    return to_row


def put_long(new_places, from_row, to_row, long_values, long_moved):
    for row in range(from_row, to_row):
        long_moved[new_places[row]] = long_values[row]
    return to_row


def put_short(new_places, from_row, to_row, short_values, short_moved):
    for row in range(from_row, to_row):
        short_moved[new_places[row]] = short_values[row]
    return to_row


def put_lengths(new_places, from_row, to_row, text_offsets, moved_offsets):
    """The length of each text goes to where the text will end."""
    for row in range(from_row, to_row):
        moved_offsets[new_places[row] + 1] = text_offsets[row + 1] - text_offsets[row]
    return to_row


def sum_lengths(from_row, to_row, first, moved_offsets):
    """Lengths become ends, where texts begin at `first`."""
    for row in range(from_row, to_row):
        first += moved_offsets[row + 1]
        moved_offsets[row + 1] = first
    return first


def put_texts(new_places, from_row, to_row, text_offsets, text_bytes, moved_offsets, moved_bytes):
    """The bytes of each text; those of place p end at moved_offsets[p + 1]."""
    for row in range(from_row, to_row):
        length = text_offsets[row + 1] - text_offsets[row]
        begin, target = text_offsets[row], moved_offsets[new_places[row] + 1] - length
        for byte in range(length):
            moved_bytes[target + byte] = text_bytes[begin + byte]
    return to_row
