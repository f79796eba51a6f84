"""The staff of the company that runs the installation: their roles, and how they sign in to the back office."""
