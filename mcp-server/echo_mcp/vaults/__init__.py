"""What the server puts around its vault, each wrapper one promise more."""
