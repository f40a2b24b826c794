"""The facts of every note of a vault, kept in step with it."""
