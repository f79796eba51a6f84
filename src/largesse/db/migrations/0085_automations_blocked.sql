-- By which the home page finds the gifts of automations that were refused and are tried again.
CREATE INDEX automation_runs_blocked ON automation_runs (customer_id, environment) WHERE state = 'waiting' AND reason IS NOT NULL;
