"""Putting the rows of each share together: loops that are the same for every query.

Where only some rows are of use, their numbers are in `use`; if it is empty, the rows are those from `first` on.
"""

# ------------------------------------------------------------------------------------------------------------------


def dense_codes(long_values, low, use, first, short_codes):
    """The numbers of rows whose values begin with the lowest and lie close together."""
    for at in range(len(short_codes)):
        row = use[at] if len(use) else first + at
        short_codes[at] = long_values[row] - low
    return len(short_codes)


def count_codes(short_codes, counts):
    """counts[c] becomes the number of rows of code c; rows of code -1 are in no partition."""
    for at in range(len(short_codes)):
        if short_codes[at] >= 0:
            counts[short_codes[at]] += 1
    return len(short_codes)


def places_by_share(short_codes, share_of, cursors, new_places):
    """Where each row goes, so that those of a share stand together; -1 for rows that are in none."""
    for at in range(len(short_codes)):
        new_places[at] = -1
        if short_codes[at] >= 0:
            share = share_of[short_codes[at]]
            new_places[at] = cursors[share]
            cursors[share] += 1
    return len(short_codes)


def move_rows(new_places, use, first, short_moved):
    """The number of each row goes where it belongs."""
    for at in range(len(new_places)):
        if new_places[at] >= 0:
            short_moved[new_places[at]] = use[at] if len(use) else first + at
    return len(new_places)


def move_long(new_places, use, first, long_values, long_moved):
    for at in range(len(new_places)):
        if new_places[at] >= 0:
            long_moved[new_places[at]] = long_values[use[at] if len(use) else first + at]
    return len(new_places)


def move_short(new_places, use, first, short_values, short_moved):
    for at in range(len(new_places)):
        if new_places[at] >= 0:
            short_moved[new_places[at]] = short_values[use[at] if len(use) else first + at]
    return len(new_places)


def move_codes(new_places, short_codes, number_of, short_moved):
    """The codes of rows that are of use go where the rows belong, as the numbers that they have in all parts."""
    for at in range(len(new_places)):
        if new_places[at] >= 0:
            short_moved[new_places[at]] = number_of[short_codes[at]]
    return len(new_places)
