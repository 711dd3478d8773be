"""`stack`: stack[c] is the stack of component c, and a row of it an active instance (SASE 2006 §4).

The rows are a ring: instance k stands at k modulo their number. Instances before base[c] are gone, and top[c] is the
next. For each test t that has stacks of its own, an instance is linked to those with its value by LINKS columns: add
LINKS * t to the column of the first test. heads[t, value, c] is the most recent instance with the value.

The last column is the instance's height on the stack of the first test.
"""

INSTANCE_ROW = 0  # the row of the event
INSTANCE_START = 1  # the row of the youngest first event that it can follow
INSTANCE_BELOW = 2  # the instance below it on the stack of its value
INSTANCE_RIP = 3  # the most recent instance of the component before, with that value, when the event came
LINKS = 2
