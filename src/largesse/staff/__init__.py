"""The people of who runs the installation: their roles, and how they sign in to the back office."""
