"""What lives in the state folder: its database files, caches and locks."""
