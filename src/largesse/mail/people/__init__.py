"""Mail to people who sign in: invitations, password resets, warnings of new devices and of low balances."""
