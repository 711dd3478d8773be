"""The functions of expressions: which there are, and what they compute from plain values.

All mean what Spark 4 means by them; where Spark asks its ANSI setting, NULL is the answer.
"""
