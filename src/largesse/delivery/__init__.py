"""What leaves the house: the outbox of mail, the queue of what is due, webhooks, and mail.

The words, which are those of code, SQL and docs alike:

    event               something that happened (largesse.events); fanned out to all who subscribe to it
    delivery            one event on its way to one subscription; an attempt is one POST of it
    subscription queue  the deliveries of one subscription; what a worker leases of webhooks
    message             one mail to one recipient, with a letter for its text; what a worker leases of mail
    notification        a message about one gift (its voucher is there, its parcel has left), instead of codes
    transport           what speaks HTTP to receivers, or SMTP to mail servers
    notifier            what wakes workers when there is work: PostgreSQL's NOTIFY
    maintenance         what is old is pruned, and what waits is measured

What orders and fulfilment hand over, mail to be, comes in by outbox.py, in their own transaction; events come in by largesse.events.
Webhooks and mail have the same files where they do the same: fan_out.py makes what is to be delivered, recording.py writes down
what came of it, transport.py talks to the outside, maintenance.py says what is old. Mail to people who sign in is apart, in `people`.
"""
