"""What all rooms share, and what depends on no room: settings, errors, money, clock, texts, logs, limits."""
