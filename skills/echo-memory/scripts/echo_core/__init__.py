"""The vault format and the ground it stands on: standard library only, imports nothing outside itself."""
