"""The inspector: a saved run in a terminal. Needs Textual (the extra `inspect`), which `app` imports."""
