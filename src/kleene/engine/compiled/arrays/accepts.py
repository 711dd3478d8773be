"""`accepts`: a row is an event for the last component, from which sequences are constructed."""

ACCEPT_ROW = 0  # the row of the event
ACCEPT_RIP = 1  # the most recent instance of the component before it with its value for test 0; then the other tests'
