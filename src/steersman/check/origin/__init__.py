"""Real states that a check starts from: of a recording at a time, or of a cluster, which is only read."""
