"""Encryption of codes and secrets, master keys and their rotation, and the chains of HMACs that show changes made from outside."""
