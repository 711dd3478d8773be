"""Putting the rows of each partition together: a loop that is the same for every query."""

# ------------------------------------------------------------------------------------------------------------------


def group_rows(codes, counts, order):
    """Puts the rows of each partition together, in their order, and gives back how many there are.

    Rows of code -1 are in no partition. counts[g] becomes the place where partition g begins.
    """
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


def leave_out(codes, short_values, wanted):
    """Rows whose value is not wanted lose their partition; wanted[v] is 1 for those that are, the last is for NULL.

    Gives back how many rows still have one.
    """
    kept = 0
    for row in range(len(codes)):
        if not wanted[short_values[row]]:
            codes[row] = -1
        kept += codes[row] >= 0
    return kept


def count_by_share(codes, share_of, counts):
    """counts[s] becomes the number of rows whose partition is in share s; rows of code -1 are in none."""
    for row in range(len(codes)):
        if codes[row] >= 0:
            counts[share_of[codes[row]]] += 1
    return len(codes)


def places_by_share(codes, share_of, cursors, new_places):
    """Where each row goes, so that those of a share stand together; -1 for rows that are in none."""
    for row in range(len(codes)):
        new_places[row] = -1
        if codes[row] >= 0:
            share = share_of[codes[row]]
            new_places[row] = cursors[share]
            cursors[share] += 1
    return len(codes)


def move_rows(new_places, first, moved):
    """The number of each row goes where it belongs; `first` is that of the first row."""
    for row in range(len(new_places)):
        if new_places[row] >= 0:
            moved[new_places[row]] = first + row
    return len(new_places)


def move_long(new_places, long_values, moved):
    for row in range(len(new_places)):
        if new_places[row] >= 0:
            moved[new_places[row]] = long_values[row]
    return len(new_places)


def move_short(new_places, short_values, short_moved):
    for row in range(len(new_places)):
        if new_places[row] >= 0:
            short_moved[new_places[row]] = short_values[row]
    return len(new_places)
