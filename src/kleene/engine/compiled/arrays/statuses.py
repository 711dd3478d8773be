"""What kernels give back. Unless it is DONE, they go on from where they stopped when they are called again."""

DONE = 0  # nothing is left to do
NEEDS_ROOM = 1  # an array that the kernel works with is full
OUTPUT_FULL = 2  # the arrays of matches are full: take them out, or make them larger
PAUSED = 3  # enough is done for now: look at the clock, then go on

# The search ends with an error.
TOO_MANY_RUNS = 4  # there are more runs at once than the limit allows
TOO_MANY_MATCHES = 5  # one event completes more matches than the limit allows
TOO_MANY_STEPS = 6  # the search from one row takes more steps than the limit allows
NO_ROW_TO_SKIP_TO = 7  # AFTER MATCH SKIP names a variable that the match does not have
SKIPS_TO_ITS_START = 8  # AFTER MATCH SKIP would find the same match forever
TOO_LARGE = 9  # a number of matches does not fit 64 bits
CONTRADICTION = 10  # the match buffer contradicts itself, as one from a forged snapshot may

FIRST_ERROR = -1000  # the first expression of the layout's errors cannot be computed; the next is FIRST_ERROR - 1
