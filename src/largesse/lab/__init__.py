"""The test lab: what callers make happen in staging to try their programs. Production has none of it."""
