"""The demo: an installation with a catalogue, two customers and a mailbox, ready in one command."""
