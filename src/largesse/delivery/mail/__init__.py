"""Mail to recipients: the letters, the messages that carry them, and the captured mailbox.

fan_out.py     messages are made of mail jobs that are due; messages.py leases them, and reads their letters
mailer.py      the worker's side: one message after the other; desk.py what all its connections share
letter.py      a letter as text and HTML: rendering.py and templates/ say it, mime.py and themes.py dress it
transport.py   hands messages to the mail server, over a kept connection (session.py, smtp.py)
refusals.py    whose fault a refusal is; recording.py writes down what became of messages
records.py     what a customer is told of an order's mail; resending.py sends it once more,
               correcting.py to another address
holding.py     mail that waits for a mail server; requeue.py what was given up, by an operator
maintenance.py what is old, and what waits
mailbox.py     captured mail: staging's, and the demo's; resealing.py brings it under the newest master key
erasing.py     takes out whom mail went to
"""
