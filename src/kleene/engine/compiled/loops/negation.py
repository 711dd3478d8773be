"""The search in the index of a negation's events: a template (`negation_index.py` says how the index is laid out)."""

# ------------------------------------------------------------------------------------------------------------------


def first_after(negative, entry_keys, low, high, key, row):
    """Where, from `low` to before `high`, the first entry stands that is behind the row among those of the key."""
    while low < high:
        middle = (low + high) >> 1
        if entry_keys[middle] < key or (entry_keys[middle] == key and negative[middle] <= row):
            low = middle + 1
        else:
            high = middle
    return low
