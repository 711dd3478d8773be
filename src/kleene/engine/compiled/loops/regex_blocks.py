"""Many partial matches of the regular-expression operator at once: a template, in front of `regex.py`.

They stand in blocks, side by side in the same states. An event is tried on a large block as a whole, by the least and
the greatest values in it; only where these disagree is the block cut in halves. With n starts in the same states that
makes about log n tries for an event, unless it parts many of them.
"""

from typing import TYPE_CHECKING

from kleene.engine.compiled.arrays.partial_matches import *
from kleene.engine.compiled.arrays.regex_blocks import *
from kleene.engine.compiled.arrays.statuses import *
from kleene.engine.compiled.loops.regex_formulas import *
from kleene.engine.compiled.loops.run_copies import copy_run

if TYPE_CHECKING:  # the two templates call each other
    from kleene.engine.compiled.loops.regex import begun, states_after

# ------------------------------------------------------------------------------------------------------------------


def try_blocks(
    row, side, count, work, matches, bits, automaton, partials, zones, blocks, ends, matched, columns, ki, kf
):
    """Tries the event on one block after the other, and on a new partial match; what is left is in the other blocks.

    What is tried is the piece of a block from `first` to ends[depth]; the pieces behind it, halves that were cut off,
    end at ends[depth - 1], ends[depth - 2] and so on. Gives back a status, how many blocks and partial matches there
    are then, and how much work is left.
    """
    follow, of_variable, accepting = automaton
    stored_i, stored_f, kept_i, kept_f, ri, rf, shared_i, shared_f = partials
    low_i, low_f, high_i, high_f = zones
    found, oi, of = matched
    top = blocks[side, count - 1, BLOCK_FIRST] + blocks[side, count - 1, BLOCK_COUNT]
    if top + 2 > len(ri):
        top = pushed_together(blocks, side, count, ri, rf, zones)
    blocks[side, count, BLOCK_FIRST] = top
    blocks[side, count, BLOCK_COUNT] = 1
    left = 0
    covered = 0
    is_taken = False
    for b in range(count + 1):
        first = blocks[side, b, BLOCK_FIRST]
        next_states = follow[len(follow) - 1]
        if b < count:
            next_states = states_after(blocks[side, b, BLOCK_STATES], follow)
        depth = 0
        ends[0] = first + blocks[side, b, BLOCK_COUNT]
        while depth >= 0:
            work -= 1
            size = 1
            reached = 0
            if ends[depth] - first > LEAF:
                size = ends[depth] - first
                is_decided = low_i[first, PARTIAL_NULLS] == 0
                for variable in range(len(of_variable)):
                    if is_decided and next_states & of_variable[variable] and (bits[row] >> variable) & 1:
                        answer = bounds(variable, first, row, zones, shared_i, shared_f, columns, ki, kf)
                        if answer == 2:
                            is_decided = False
                        elif answer == 1:
                            reached |= next_states & of_variable[variable]
                if not is_decided:
                    depth += 1
                    ends[depth] = first + size // 2
                    enclose(first, ends[depth], ri, rf, zones)
                    enclose(ends[depth], first + size, ri, rf, zones)
                    work -= size
                    continue
            else:
                for variable in range(len(of_variable)):
                    if next_states & of_variable[variable] and (bits[row] >> variable) & 1:
                        answer = holds(variable, first, row, ri, rf, shared_i, shared_f, columns, ki, kf)
                        if answer < 0:
                            return answer, 0, 0, work
                        if answer > 0:
                            reached |= next_states & of_variable[variable]
            if reached != 0:
                if not is_taken:
                    is_taken = True
                    status = take_event(row, shared_i, shared_f, columns, ki, kf)
                    if status < 0:
                        return status, 0, 0, work
                if b == count:
                    status = begun(first, row, ri, rf, columns, ki, kf)
                    if status < 0:
                        return status, 0, 0, work
                if reached & accepting and oi[matches, PARTIAL_STATES] == 0:
                    copy_run(ri, rf, first, oi, of, matches)
                    oi[matches, PARTIAL_STATES] = reached
                reached &= ~(covered & FREE_STATES)
                if size > 1 and reached & FREE_STATES:  # for the others of the piece, these states are covered
                    copy_run(low_i, low_f, first, low_i, low_f, first + 1)
                    copy_run(high_i, high_f, first, high_i, high_f, first + 1)
                    size = 1
                covered |= reached
                if reached != 0:
                    left = placed(blocks, 1 - side, left, first, size, reached, ri, rf)
                    if can_merge(blocks, 1 - side, left):
                        left = merged(blocks, 1 - side, left, ri, rf, zones)
            first += size
            while depth >= 0 and first == ends[depth]:
                depth -= 1
    return DONE, left, runs_in(blocks, 1 - side, left), work


def in_blocks(base, partial, ri, rf, zones, blocks):
    """Puts the partial matches into blocks, and gives back how many of both there are."""
    count = 0
    for r in range(base, base + partial):
        count = placed(blocks, 0, count, r, 1, ri[r, PARTIAL_STATES], ri, rf)
        if can_merge(blocks, 0, count):
            count = merged(blocks, 0, count, ri, rf, zones)
    return count, runs_in(blocks, 0, count)


def runs_in(blocks, side, count):
    partial = 0
    for b in range(count):
        partial += blocks[side, b, BLOCK_COUNT]
    return partial


def in_rows(side, count, ri, rf, zones, blocks):
    """Takes the partial matches out of their blocks, and gives back the row where they begin."""
    pushed_together(blocks, side, count, ri, rf, zones)
    for b in range(count):
        first = blocks[side, b, BLOCK_FIRST]
        for r in range(first, first + blocks[side, b, BLOCK_COUNT]):
            ri[r, PARTIAL_STATES] = blocks[side, b, BLOCK_STATES]
    return 0


def pushed_together(blocks, side, count, ri, rf, zones):
    """Closes the gaps that partial matches have left in `ri`, and gives back the first row behind all of them."""
    low_i, low_f, high_i, high_f = zones
    top = 0
    for b in range(count):
        first = blocks[side, b, BLOCK_FIRST]
        if first != top:
            copy_run(low_i, low_f, first, low_i, low_f, top)
            copy_run(high_i, high_f, first, high_i, high_f, top)
            for r in range(blocks[side, b, BLOCK_COUNT]):
                copy_run(ri, rf, first + r, ri, rf, top + r)
            blocks[side, b, BLOCK_FIRST] = top
        top += blocks[side, b, BLOCK_COUNT]
    return top


def placed(blocks, side, count, first, size, states, ri, rf):
    """Puts a piece behind the blocks of a table, and gives back how many blocks there are then.

    It becomes part of the last block where that is in the same states, and both are small.
    """
    if count > 0 and blocks[side, count - 1, BLOCK_STATES] == states:
        behind = blocks[side, count - 1, BLOCK_FIRST] + blocks[side, count - 1, BLOCK_COUNT]
        if size == 1 and agree(behind - 1, first, ri, rf):
            return count
        if blocks[side, count - 1, BLOCK_COUNT] + size <= LEAF:
            if behind != first:
                for r in range(size):
                    copy_run(ri, rf, first + r, ri, rf, behind + r)
            blocks[side, count - 1, BLOCK_COUNT] += size
            return count
    blocks[side, count, BLOCK_FIRST] = first
    blocks[side, count, BLOCK_COUNT] = size
    blocks[side, count, BLOCK_STATES] = states
    return count + 1


def can_merge(blocks, side, count):
    """Whether the last two blocks are in the same states and alike in size: that has the same number of digits.

    So the blocks of many starts are few, and one that an event cuts in halves is not put together again at once.
    """
    if count < 2 or blocks[side, count - 2, BLOCK_STATES] != blocks[side, count - 1, BLOCK_STATES]:
        return False
    size, other = blocks[side, count - 2, BLOCK_COUNT], blocks[side, count - 1, BLOCK_COUNT]
    return size + other > LEAF and (size ^ other) < (size & other)


def merged(blocks, side, count, ri, rf, zones):
    """Makes the last two blocks one as long as that can be done, and gives back how many blocks there are then."""
    low_i, low_f, high_i, high_f = zones
    while can_merge(blocks, side, count):
        first, size = blocks[side, count - 2, BLOCK_FIRST], blocks[side, count - 2, BLOCK_COUNT]
        other, more = blocks[side, count - 1, BLOCK_FIRST], blocks[side, count - 1, BLOCK_COUNT]
        if size <= LEAF:
            enclose(first, first + size, ri, rf, zones)
        if more <= LEAF:
            enclose(other, other + more, ri, rf, zones)
        beyond = low_i[first, PARTIAL_NULLS] | low_i[other, PARTIAL_NULLS]
        widen(first, low_i, low_f, high_i, high_f, other, zones)
        low_i[first, PARTIAL_NULLS] = beyond
        if first + size != other:
            for r in range(more):
                copy_run(ri, rf, other + r, ri, rf, first + size + r)
        blocks[side, count - 2, BLOCK_COUNT] = size + more
        count -= 1
    return count


def enclose(first, last, ri, rf, zones):
    """Finds the least and the greatest values of the partial matches from `first` to before `last`."""
    low_i, low_f, high_i, high_f = zones
    copy_run(ri, rf, first, low_i, low_f, first)
    copy_run(ri, rf, first, high_i, high_f, first)
    beyond = 0
    for r in range(first, last):
        if is_beyond_bounds(r, ri, rf):
            beyond = 1
        widen(first, ri, rf, ri, rf, r, zones)
    low_i[first, PARTIAL_NULLS] = beyond


def widen(block, least_i, least_f, greatest_i, greatest_f, other, zones):
    """Takes in other values: those in the row `other` of the tables given."""
    low_i, low_f, high_i, high_f = zones
    for column in range(INTEGER_COLUMNS):
        low_i[block, column] = min(low_i[block, column], least_i[other, column])
        high_i[block, column] = max(high_i[block, column], greatest_i[other, column])
    for column in range(FLOAT_COLUMNS):
        low_f[block, column] = min(low_f[block, column], least_f[other, column])
        high_f[block, column] = max(high_f[block, column], greatest_f[other, column])
