"""Search over the notes: tokens, passages, the store and its index, scores, and what is shown (spec 5)."""
