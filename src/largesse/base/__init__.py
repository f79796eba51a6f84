"""Modules that all packages share and that depend on none of them: settings, errors, money, clock, texts, logs, limits."""
