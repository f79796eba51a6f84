-- Outside a transaction
-- By which the home page finds the gifts of automations that failed or were missed in the last days. It read all runs of these days.
CREATE INDEX CONCURRENTLY IF NOT EXISTS automation_runs_lost ON automation_runs (customer_id, automation_id, send_on)
    WHERE state IN ('failed', 'missed');
