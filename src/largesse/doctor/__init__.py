"""`largesse check`: looks for what cannot work or is doubtful in the settings, the database and the machine."""
