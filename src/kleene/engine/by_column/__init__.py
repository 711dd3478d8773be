"""Measures of row patterns by column: an expression and flat arrays of matches to a column of values.

`vectors` holds values of many points, `operators` computes with them from the bottom up, `numbers` has exact
arithmetic, `matches` knows which rows a match has where, `aggregates` and `lists` go over these rows, `forms` says what
has a column form, and `measures` makes Arrow columns. What has no column form is computed value by value, by the
interpreter; what may be an error is computed by the interpreter alone (`interpreted`), which knows what to say of it.
"""
