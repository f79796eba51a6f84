"""What is known of `dump.sql`, a database of release 0.1.0.

The key was drawn for this fixture and has never sealed anything else; the people, codes and vouchers are made up. They
guard nothing.
"""

MASTER_KEY = "87fd3e4a21a9db7536d0afcafa9eb07a21f38753d151090e51b9b8d83084d2e8"

# One of its codes that nobody has claimed, as its caller was told.
REFERENCE, CODE, PIN = "F702T1Z9E4XW8MB0J3RC", "629N-Y757-FXNF-00D6-M", "547947"
