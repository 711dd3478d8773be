"""Candidates that ranges have found to matches, in one pass: loops that are the same for every query."""

# ------------------------------------------------------------------------------------------------------------------


def choose_rows(starts, goes_on, progress, match_numbers):
    """Of candidates by their starts, those that matching finds get numbers, from 1; others get 0.

    progress[0] is the row where matching goes on, and progress[1] the number of matches so far; both are kept for the
    candidates that follow. Gives back -1 if matching cannot go on after a match, which is where goes_on is below 0.
    """
    for candidate in range(len(starts)):
        match_numbers[candidate] = 0
        if starts[candidate] >= progress[0]:
            if goes_on[candidate] < 0:
                return -1
            progress[0] = goes_on[candidate]
            progress[1] += 1
            match_numbers[candidate] = progress[1]
    return len(starts)


def choose_matches(firsts, lasts, order, is_chosen):
    """Of candidates, in an order by their ends, those that begin behind the end of the one chosen before."""
    ended, seen = -1, -1
    for at in range(len(order)):
        candidate = order[at]
        if lasts[candidate] != seen:  # else another that ends here was better
            seen = lasts[candidate]
            if firsts[candidate] > ended:
                ended = seen
                is_chosen[candidate] = 1
    return len(order)
