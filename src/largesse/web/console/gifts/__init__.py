"""Pages for the catalogue, collections and templates."""
