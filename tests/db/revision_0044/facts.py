"""What is known of `dump.sql`, the rows of a database at revision 0044.

The master key was drawn for this fixture and encrypts nothing else. People, codes, the API key and the session are made up. They guard nothing.
"""

MASTER_KEY = "6e8b0c8c35310c14365826d926b0fdae4fecbf4cee6fbb1d62d89c8c01c12a4d"
API_KEY = "lgs_test_n6t76F9xOqCkRvZ9YuDdUrSnPgx68pjlmFZIl756Bzz4W75lf"
SESSION = "bxQpnm4CxMzGUKRwOfn0k9pJURRhn_YbMxtCeS14qQI"
PASSWORD = "correct horse battery staple"
AT = "2026-11-23 20:20+00"  # when the session was open

# A code that nobody has claimed, as its caller got it.
REFERENCE, NUMBER, CODE, PIN = "F71M0F5XQE9GFEVSDXAG", 3, "026X-NRXV-TPSK-R2A2-Z", "136171"
