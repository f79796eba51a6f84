"""Templates: saved presets of a send."""
