"""Background work: leases with fencing tokens, retries, NOTIFY with polling behind it, outcomes written in batches, retention.

A row that is due is the job. Orders hand over mail by `outbox`, in their own transaction.
"""
