"""Vault backends. `base` states the contract that every backend and wrapper keeps."""
