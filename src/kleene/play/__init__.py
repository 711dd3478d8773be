"""The playground: a local page on which a query is written, and shows what it does as one types."""
