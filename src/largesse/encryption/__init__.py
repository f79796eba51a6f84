"""Encryption of codes and secrets, master keys and their rotation, and chains of HMACs, which show changes made without Largesse."""
