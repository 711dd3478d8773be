"""Reading matches out of the versioned buffer: a loop that is the same for every query."""

from kleene.engine.compiled.arrays.completions import *
from kleene.engine.compiled.arrays.edges import *
from kleene.engine.compiled.arrays.expand_counters import *
from kleene.engine.compiled.arrays.nodes import *
from kleene.engine.compiled.arrays.statuses import *
from kleene.engine.compiled.loops.merged_matches import write_match
from kleene.engine.compiled.loops.walk import compatible

# ------------------------------------------------------------------------------------------------------------------


def expand_versions(st, done, count, node, edge, version, stack, trail, bounds, offsets, lengths, p, origin):
    """Writes out matches from where `st` says, and gives back a status. A completion is one match.

    trail[d] is the row of the node at depth d, bounds[c] the depth where component c is met on the way back.
    """
    at, matches, rows = st[EXPAND_COMPLETION], st[EXPAND_MATCHES], st[EXPAND_ROWS]
    status = DONE
    while at < count:
        n, label = done[at, COMPLETION_NODE], done[at, COMPLETION_VERSION]
        depth = 0
        component = len(bounds)
        while n >= 0:
            if depth == len(trail):
                status = NEEDS_ROOM
                break
            trail[depth] = node[n, NODE_ROW]
            if node[n, NODE_COMPONENT] != component:
                component = node[n, NODE_COMPONENT]
                bounds[component] = depth
            depth += 1
            e, label = compatible(n, label, node, edge, version)
            if e < 0:
                status = CONTRADICTION
                break
            n = edge[e, EDGE_BEFORE]
        if status != DONE:
            break
        if matches + 1 >= len(offsets) or rows + depth > len(p):
            status = OUTPUT_FULL
            break
        write_match(trail, bounds, depth, lengths, matches, p, rows)
        rows += depth
        origin[matches] = at
        matches += 1
        offsets[matches] = rows
        at += 1
    st[EXPAND_COMPLETION], st[EXPAND_MATCHES], st[EXPAND_ROWS] = at, matches, rows
    return status
