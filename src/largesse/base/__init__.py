"""What every room uses and what knows no room: settings, errors, money, clock, texts, logs, limits."""
