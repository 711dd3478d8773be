"""`node`: a row is a node of the match buffer, an event that was selected for a component.

In the buffer of the merging algorithm the nodes before a node are a list, because merged runs have several histories.
A list is known by its first node, and goes on along NODE_NEXT. In the versioned buffer a node has edges instead.
"""

NODE_ROW = 0  # the row of the event
NODE_COMPONENT = 1  # the component that it was selected for
NODE_BEFORE = 2  # merged: the list of nodes before this one, -1 for a first event
NODE_EDGES = 2  # versioned: the first of the node's edges
NODE_NEXT = 3  # the next node of the list that this one begins, -1 at its end
NODE_START = 4  # the youngest first event of a match through this node
NODE_LIST_START = 5  # the youngest first event of a match through any node of the list that this one begins
NODE_WAY_LENGTH = 6  # how many events lead here, this one included, if there is one way only; else 0
NODE_WAY_BEFORE = 7  # in that case, the last node of the component before this one's, -1 if there is none
NODE_COLUMNS = 8
NODE_SHARED_COLUMNS = 4  # the first columns, which compressed output gives away
