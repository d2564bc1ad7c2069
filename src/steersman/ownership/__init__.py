"""Who may write which field, and what follows from who reads and writes what, before anything runs."""
