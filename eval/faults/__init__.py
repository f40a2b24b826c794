"""What can go wrong, as runnable scenarios: each shows that its fault fired and what ECHO made of it (spec 6.7).

`catalogue/` names the scenarios of each group and the tests that prove them; `run` runs them in shards and prints the
table; `mutants` seeds known bugs and expects the tests to notice. The other modules are what the scenarios share.
"""
