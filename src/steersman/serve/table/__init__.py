"""Objects as rows: the columns kubectl shows."""
