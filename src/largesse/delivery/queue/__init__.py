"""What webhooks and mail share: leases, schedules, the notifier that wakes workers, and metrics.

leasing.py      a lease of a row, and the statements that take, renew and give it back
leases.py       the leases that a process holds, and until when they are certain
loop.py         a worker's loop: again and again, whatever happens
notifier.py     NOTIFY and LISTEN, with polling behind them
recorder.py     outcomes written in batches, until they are written
schedule.py     when to try again
maintenance.py  what is old goes, what waits is measured; metrics.py the figures
"""
