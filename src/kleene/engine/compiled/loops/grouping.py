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
