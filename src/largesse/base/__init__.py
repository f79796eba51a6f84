"""What every room stands on and none of it knows of: settings, errors, money, the vault, batching."""
