"""Going back through the versioned match buffer: a template for queries whose formulas look at all earlier events.

The loops that read matches out of the buffer, and those that free it, go back in the same way.
"""

import numpy as np

from kleene.engine.compiled.arrays.edges import *
from kleene.engine.compiled.arrays.nodes import *
from kleene.engine.compiled.arrays.versions import *

# ------------------------------------------------------------------------------------------------------------------


def compatible(n, label, node, edge, version):
    """The edge by which a run of this version came to the node, and the version of that edge.

    It is the run's own edge if it has one there; else that of the run it was split from or grew out of, and so on. No
    edge is left only in a forged snapshot: -1.
    """
    while label >= 0:
        e = node[n, NODE_EDGES]
        while e >= 0:
            if edge[e, EDGE_VERSION] == label:
                return e, label
            e = edge[e, EDGE_NEXT]
        label = version[label, VERSION_ORIGIN]
    return -1, -1


def events_of(component, count, at, label, node, edge, version):
    """The rows that a run selected for a component, oldest first; the run is known by its head and its version."""
    rows = np.zeros(count, np.int64)
    left = count
    while at >= 0 and left > 0:
        if node[at, NODE_COMPONENT] == component:
            left -= 1
            rows[left] = node[at, NODE_ROW]
        e, label = compatible(at, label, node, edge, version)
        if e < 0:
            break
        at = edge[e, EDGE_BEFORE]
    return rows
