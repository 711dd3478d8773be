"""Going back through the versioned match buffer: a template for queries whose formulas look at all earlier events."""

from __future__ import annotations

import numpy as np

# ------------------------------------------------------------------------------------------------------------------


def events_of(component, count, at, label, node, edge, version):
    """The rows that a run selected for a component, oldest first; the run is known by its head and its version."""
    rows = np.zeros(count, np.int64)
    left = count
    while at >= 0 and left > 0:
        if node[at, 1] == component:
            left -= 1
            rows[left] = node[at, 0]
        chosen = -1
        while chosen < 0 and label >= 0:
            e = node[at, 2]
            while e >= 0:
                if edge[e, 0] == label:
                    chosen = e
                    break
                e = edge[e, 2]
            if chosen < 0:
                label = version[label, 0]
        if chosen < 0:  # no run came here: only in a snapshot that was forged
            break
        at = edge[chosen, 1]
    return rows
