"""The second look at acknowledged writes behind an API without compare-and-swap (spec 6.1)."""
