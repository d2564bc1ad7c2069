"""Custom kinds: definitions, schemas, versions, rules and pruning."""
