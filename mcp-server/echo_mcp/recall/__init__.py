"""The search index of the server: which engine, and where it is kept."""
