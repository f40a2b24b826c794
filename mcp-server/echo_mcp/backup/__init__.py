"""Backups of the vault: made and verified, rotated, drilled, restored (spec 6.4)."""
