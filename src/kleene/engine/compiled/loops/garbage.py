"""Freeing what no run can reach in the match buffer: loops that are the same for every query."""

from kleene.engine.compiled.arrays.edges import *
from kleene.engine.compiled.arrays.nodes import *
from kleene.engine.compiled.arrays.statuses import *
from kleene.engine.compiled.loops.merged_matches import first_near
from kleene.engine.compiled.loops.walk import compatible

# ------------------------------------------------------------------------------------------------------------------


def mark_merged(node, count, now, window):
    """Marks what the marked heads reach, and takes out of lists what has left the window.

    now[n] is the row that n's partition has come to, -1 for what is not needed.
    """
    for n in range(count - 1, -1, -1):
        row = now[n]
        if row < 0:
            continue
        for link in range(NODE_BEFORE, NODE_NEXT + 1):
            other = first_near(node[n, link], row, node, window)
            node[n, link] = other
            if other >= 0 and now[other] < row:
                now[other] = row
    return DONE


def mark_versions(heads, labels, node, edge, version, node_marks, edge_marks, version_marks):
    """Marks what the runs with these heads and versions selected."""
    for run in range(len(heads)):
        n, label = heads[run], labels[run]
        version_marks[label] = 1
        while n >= 0:
            e, label = compatible(n, label, node, edge, version)
            if e < 0 or edge_marks[e] == 1:
                break
            node_marks[n] = 1
            edge_marks[e] = 1
            version_marks[label] = 1
            n = edge[e, EDGE_BEFORE]
    return DONE


def resolve(links, marks, resolved):
    """For each number, follows its links, which lead to smaller numbers, to the first that is marked; -1 for none."""
    for n in range(len(links)):
        other = links[n]
        if other < 0 or marks[other] > 0:
            resolved[n] = other
        else:
            resolved[n] = resolved[other]
    return DONE


def live_heads(heads, node, window):
    """Moves each head to the first node of its list that was in the window when the list was last added to."""
    for run in range(len(heads)):
        n = first_near(heads[run], node[heads[run], NODE_ROW], node, window)
        if n >= 0:
            heads[run] = n
    return DONE


def renumbered(n, numbers):
    return numbers[n] if n >= 0 else -1


def pack_merged(node, count, now):
    """Moves what is marked to the front; `now` becomes the new numbers, -1 for what is gone."""
    kept = 0
    for n in range(count):
        if now[n] < 0:
            continue
        now[n] = kept
        for column in range(NODE_COLUMNS):
            node[kept, column] = node[n, column]
        node[kept, NODE_BEFORE] = renumbered(node[n, NODE_BEFORE], now)
        node[kept, NODE_NEXT] = renumbered(node[n, NODE_NEXT], now)
        node[kept, NODE_WAY_BEFORE] = renumbered(node[n, NODE_WAY_BEFORE], now)
        kept += 1
    return kept
