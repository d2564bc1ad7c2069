"""The audit log: who did what, and what came of it; off unless asked for."""
