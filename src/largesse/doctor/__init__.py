"""`largesse check`: finds errors and doubtful values in the settings, the database and the machine."""
