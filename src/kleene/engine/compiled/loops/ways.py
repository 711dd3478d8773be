"""Adding up what all ways through a graph of matches bring, in 64 bits: loops that are the same for every query.

Of a node, `ways` are those that lead to it, and `list_ways` those that lead to it or to the rest of its list. What they
bring is `added` and `list_added`.
"""

from kleene.engine.compiled.arrays.counted import *
from kleene.engine.compiled.arrays.statuses import *
from kleene.engine.compiled.arrays.walks import *

# ------------------------------------------------------------------------------------------------------------------


def add_up_ways(graph, brought, room, counts, totals):
    """Adds to `counts` the ways of each completion, and to `totals` what their nodes bring; gives back a status."""
    before, rest, reach, walks, done_node, done_row = graph
    ways, list_ways, added, list_added = room
    for walk in range(len(walks)):
        begin, end, limit = walks[walk, WALK_BEGIN], walks[walk, WALK_END], walks[walk, WALK_REACH]
        at = walks[walk, WALK_DONE]
        for n in range(begin, end):
            link, after = before[n], rest[n]
            count, total = 0, 0
            if link < 0:
                if reach[n] == limit:
                    count = 1
            elif link >= begin:
                count, total = list_ways[link], list_added[link]
            if brought[n] != 0 and count != 0:
                if abs(float(count) * float(brought[n])) > MOST_COUNTED:
                    return TOO_LARGE
                total += count * brought[n]
            ways[n], added[n] = count, total
            if after >= begin:
                count += list_ways[after]
                total += list_added[after]
            if count > MOST_COUNTED or abs(total) > MOST_COUNTED or abs(added[n]) > MOST_COUNTED:
                return TOO_LARGE
            list_ways[n], list_added[n] = count, total
            while at < len(done_node) and done_node[at] == n:
                if done_row[at] <= limit:
                    counts[at] += ways[n]
                    totals[at] += added[n]
                    if counts[at] > MOST_COUNTED or abs(totals[at]) > MOST_COUNTED:
                        return TOO_LARGE
                at += 1
    return DONE


def highest_on_ways(graph, ranks, room, peaks):
    """Writes to `peaks` the highest rank on any way of each completion, if it is higher than what stands there.

    Here `ways` say only whether there is one, and `added` are highest ranks.
    """
    before, rest, reach, walks, done_node, done_row = graph
    ways, list_ways, added, list_added = room
    for walk in range(len(walks)):
        begin, end, limit = walks[walk, WALK_BEGIN], walks[walk, WALK_END], walks[walk, WALK_REACH]
        at = walks[walk, WALK_DONE]
        for n in range(begin, end):
            link, after = before[n], rest[n]
            is_there, highest = 0, -1
            if link < 0:
                if reach[n] == limit:
                    is_there = 1
            elif link >= begin:
                is_there, highest = list_ways[link], list_added[link]
            if is_there != 0 and ranks[n] > highest:
                highest = ranks[n]
            ways[n], added[n] = is_there, highest
            if after >= begin:
                is_there = max(is_there, list_ways[after])
                highest = max(highest, list_added[after])
            list_ways[n], list_added[n] = is_there, highest
            while at < len(done_node) and done_node[at] == n:
                if done_row[at] <= limit and added[n] > peaks[at]:
                    peaks[at] = added[n]
                at += 1
    return DONE
