"""Measures of row patterns by column: an expression and flat arrays of matches to a column of values.

`forms` says what has a column form, `vectors` holds the values of many points, `numbers` has exact arithmetic,
`operators` computes from the bottom up, `matches` knows which rows a match has, `aggregates` goes over these rows, and
`measures` makes Arrow columns. What has no column form is computed value by value, by the interpreter; a measure that
may be an error is computed by the interpreter alone (`interpreted`), which knows what to say of it.
"""
