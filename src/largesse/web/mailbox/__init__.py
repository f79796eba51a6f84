"""The captured mail of the demo and of test mode, at `/mailbox`."""
