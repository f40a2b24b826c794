"""Stand-ins for what ECHO talks to, with their faults built in."""
