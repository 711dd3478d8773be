"""`own`: a row is an event that a run of the backtrack algorithm has selected."""

OWN_ROW = 0  # the row of the event
OWN_COMPONENT = 1  # the component that it is bound to
OWN_COLUMNS = 2
