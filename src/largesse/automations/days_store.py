"""The SQL of the days on which automations send: which contacts have them, and when their gifts leave."""

from collections.abc import Sequence

import msgspec

from largesse.automations.model import LONGEST_SERVICE
from largesse.base.clock import running_s
from largesse.db.fragments import NOTHING, Fragment, compose
from largesse.db.pool import Connection

# The days of an automation `a`, from its column `first` through `last`, in their order. A subquery of its own (OFFSET 0), with every value by which
# contacts are found: under row-level security, an index serves only comparisons with a column.
_EACH_DAY = Fragment("""
    SELECT d::date AS on_day, d::date - a.days AS joined_on, extract(year FROM d)::integer AS year,
           extract(month FROM d)::integer * 100 + extract(day FROM d)::integer AS key,
           CASE WHEN extract(month FROM d)::integer * 100 + extract(day FROM d)::integer
                         = CASE a.leap_day WHEN 'before' THEN 228 ELSE 301 END
                     AND extract(day FROM make_date(extract(year FROM d)::integer, 3, 1) - 1) = 28
                THEN 229 END AS leap_key
    FROM generate_series(a.first, a.last, interval '1 day') AS d ORDER BY d::date OFFSET 0
""")
# The contacts of an automation `a` for each of its days: those who have that day and are in its group. Each contact is looked up in the group
# (OFFSET 0). Otherwise the planner, which expects a policy to show few members, reads the whole group for each contact.
_OF_DAYS = """
    SELECT day.on_day, c.id, c.country, c.name, c.email, greatest(c.known_at, g.joined_at) AS known_at
    FROM ({each_day}) AS day
    CROSS JOIN LATERAL (
        SELECT c.id, c.country, c.name, c.email, c.created_at AS known_at FROM contacts c
        WHERE a.occasion = 'birthday' AND c.customer_id = a.customer_id AND c.environment = a.environment AND c.left_at IS NULL
          AND c.birthday IN (day.key, day.leap_key)
        UNION ALL
        SELECT c.id, c.country, c.name, c.email, c.created_at AS known_at FROM contacts c
        WHERE a.occasion IN ('anniversary', 'first_day') AND c.customer_id = a.customer_id AND c.environment = a.environment
          AND c.left_at IS NULL AND c.start_date = ANY(
            CASE a.occasion WHEN 'first_day' THEN ARRAY[day.on_day] ELSE ARRAY(
                SELECT make_date(day.year - years, key / 100, key % 100)
                FROM generate_series(1, {longest}) AS years, unnest(ARRAY[day.key, day.leap_key]) AS key
                WHERE (a.years = '{}' OR years = ANY(a.years))
                  AND (key <> 229 OR extract(day FROM make_date(day.year - years, 3, 1) - 1) = 29)) END)
        UNION ALL
        SELECT c.id, c.country, c.name, c.email, coalesce(m.joined_at, c.created_at) AS known_at
        FROM contact_members m JOIN contacts c ON c.customer_id = m.customer_id AND c.id = m.contact_id
        WHERE a.occasion = 'joined' AND m.customer_id = a.customer_id AND m.group_id = a.group_id
          AND m.joined_on = day.joined_on AND c.left_at IS NULL{sorted}) AS c
    LEFT JOIN LATERAL (
        SELECT g.contact_id, g.joined_at FROM contact_members g
        WHERE g.customer_id = a.customer_id AND g.group_id = a.group_id AND g.contact_id = c.id OFFSET 0) AS g ON true
    WHERE a.group_id IS NULL OR g.contact_id IS NOT NULL
"""
_BY_DAY = compose(_OF_DAYS, each_day=_EACH_DAY, longest=LONGEST_SERVICE, sorted=NOTHING)
# The same in the order of names, for an automation with one day: the first of many contacts are taken before more is read of them.
_BY_NAME = compose(
    _OF_DAYS, each_day=_EACH_DAY, longest=LONGEST_SERVICE, sorted=Fragment(" ORDER BY name, email OFFSET 0")
)
# The same for an automation whose group has few members: reads the members, and finds which of the days each has. Not for automations
# for joining a group.
_BY_MEMBER = compose(
    """
    SELECT days.days[place] AS on_day, c.id, c.country, c.name, c.email, greatest(c.created_at, c.joined_at) AS known_at
    FROM (SELECT array_agg(day.on_day) AS days, array_agg(its.key) AS keys
          FROM ({each_day}) AS day, unnest(ARRAY[day.key, day.leap_key]) AS its (key) WHERE its.key IS NOT NULL) AS days
    CROSS JOIN LATERAL (
        SELECT c.*, g.joined_at, extract(year FROM c.start_date)::integer AS year,
               array_positions(days.keys, CASE a.occasion WHEN 'birthday' THEN c.birthday
                   ELSE extract(month FROM c.start_date)::integer * 100 + extract(day FROM c.start_date)::integer END) AS places
        FROM contact_members g JOIN contacts c ON c.customer_id = g.customer_id AND c.id = g.contact_id
        WHERE g.customer_id = a.customer_id AND g.group_id = a.group_id AND c.left_at IS NULL OFFSET 0) AS c
    CROSS JOIN LATERAL unnest(c.places) AS place
    WHERE CASE a.occasion WHEN 'birthday' THEN true WHEN 'first_day' THEN c.start_date = days.days[place]
        ELSE extract(year FROM days.days[place])::integer - c.year BETWEEN 1 AND {longest}
            AND (a.years = '{}' OR extract(year FROM days.days[place])::integer - c.year = ANY(a.years)) END
    OFFSET 0
    """,
    each_day=_EACH_DAY,
    longest=LONGEST_SERVICE,
)
# The gifts of an automation `a`, of the contacts above. Each has the time when the gift is sent, and the time by which the contact must have been
# added. New employees are often added on their first day after nine o'clock; they get the gift late.
# `model.has_day` does the same for one contact and day.
_GIFTS_OF_SOME = """
    SELECT d.*, (send_on + time '09:00') AT TIME ZONE zone - ahead AS due_at,
           CASE WHEN occasion = 'first_day' THEN (on_day + 1)::timestamp AT TIME ZONE zone - ahead END AS over_at
    FROM (
        SELECT a.customer_id, a.environment, a.id AS automation_id, c.id AS contact_id, c.on_day,
               c.on_day + CASE
                   WHEN a.weekend = 'keep' OR extract(isodow FROM c.on_day) < 6 THEN 0
                   WHEN a.weekend = 'before' THEN 5 - extract(isodow FROM c.on_day)::integer
                   ELSE 8 - extract(isodow FROM c.on_day)::integer END AS send_on,
               coalesce((
                   SELECT jsonb_object_agg(z.country, z.zone)
                   FROM unnest($1::text[], $2::text[]) AS z (country, zone) WHERE z.country IS NOT NULL) ->> c.country, a.known_zone) AS zone,
               a.ahead, a.occasion, greatest(a.created_at, a.days_changed_at) AS since, c.known_at, c.name, c.email
        FROM ({contacts}) AS c) AS d
"""
GIFTS = compose(_GIFTS_OF_SOME, contacts=_BY_DAY)
GIFTS_BY_NAME = compose(_GIFTS_OF_SOME, contacts=_BY_NAME)
GIFTS_OF_FEW = compose(_GIFTS_OF_SOME, contacts=_BY_MEMBER)
# The automations in `asked`, each with its zone if the server knows it; $1 and $2 are of `zone_columns`.
ZONED = Fragment("""
    zoned AS (SELECT asked.*, CASE WHEN asked.zone = ANY($2::text[]) THEN asked.zone ELSE 'UTC' END AS known_zone FROM asked OFFSET 0)
""")
# Whether the automation existed with these days before the gift was due, and the contact was added, also to the group, in time.
# A contact who joins a group is always in time for a gift that is for joining it.
# A contact who joins, or is added in time, after the automation was created on the same day also gets it.
IN_TIME = Fragment("""
    (d.due_at >= d.since OR d.occasion IN ('first_day', 'joined') AND d.known_at >= d.since)
    AND (d.occasion = 'joined' OR greatest(d.due_at, d.over_at) >= d.known_at)
""")
_ZONES = "SELECT array_agg(name) FROM pg_timezone_names"
_READ_AGAIN_S = 3600.0


class _ServerZones(msgspec.Struct):
    """The names of the zones that the server knows."""

    names: frozenset[str] = frozenset()
    until_s: float = 0.0  # when they are read again


_server_zones = _ServerZones()


async def zone_columns(connection: Connection, zones: Sequence[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Returns the countries of `zones`, and the zones of these countries followed by all zones that the server knows.

    The server may not know every zone that this machine knows, and an unknown zone would be an error for the automations of all customers.
    To list its zones, it reads a file for each, which takes about 40 ms. So the list is read once an hour.
    """
    if running_s() >= _server_zones.until_s:
        _server_zones.names = frozenset(await connection.fetchval(_ZONES))
        _server_zones.until_s = running_s() + _READ_AGAIN_S
    known = _server_zones.names
    return [country for country, _ in zones], [*(zone if zone in known else "UTC" for _, zone in zones), *known]
