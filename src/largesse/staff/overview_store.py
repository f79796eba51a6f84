"""The SQL of the back office's first page. It reads tables of other packages."""

from __future__ import annotations

# Each number is exact below the limit $1, and is counted from an index of waiting rows.
WAITING = """
    SELECT (SELECT count(*) FROM (SELECT FROM top_ups WHERE state = 'waiting' AND environment = 'production' LIMIT $1) AS w) AS top_ups,
           (SELECT count(*) FROM (SELECT FROM voucher_waits LIMIT $1) AS w) AS vouchers,
           (SELECT count(*) FROM (SELECT FROM messages WHERE state = 'held' LIMIT $1) AS w) AS held,
           (SELECT count(*) FROM (SELECT FROM subscription_queues WHERE failing LIMIT $1) AS w) AS failing
"""
# Sessions of this database, by application name.
SESSIONS = """
    SELECT application_name AS name, count(*) AS sessions FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE 'largesse%' GROUP BY 1 ORDER BY 1
"""
SERVER = """
    SELECT current_setting('server_version') AS version, pg_database_size(current_database()) AS size_bytes,
           (SELECT max(version_num) FROM alembic_version) AS revision
"""
# Days in UTC, by currency, of production only.
DAYS = """
    SELECT s.day, g.currency, sum(s.orders)::bigint AS orders, sum(s.claimed)::bigint AS claimed, sum(s.spent_minor)::bigint AS spent_minor
    FROM report_sums s JOIN report_groups g ON g.customer_id = s.customer_id AND g.id = s.group_id
    WHERE s.grain = 'day' AND s.day = ANY($1::date[]) AND g.environment = 'production'
    GROUP BY 1, 2 ORDER BY 2, 1
"""
TODAY = "SELECT (clock_now() AT TIME ZONE 'UTC')::date"
