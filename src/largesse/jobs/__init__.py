"""Background work: leases with fencing tokens, retries, NOTIFY with polling behind it, outcomes written in batches, retention.

A job is a row that is due. Orders pass on mail through `outbox`, in their own transaction.
"""
