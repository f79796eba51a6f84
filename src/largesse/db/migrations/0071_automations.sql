-- Rules by which gifts are sent by themselves: on a day of a contact, from a template, as the person who set the rule last.
--   occasion         birthday; anniversary and first_day, by the start date; joined, `days` after joining the group
--   group_id         the contacts that it is about; null: all
--   years            of an anniversary, which; none: every year
--   zone             of contacts without a country
--   leap_day         29 February in other years: the day before, 28 February, or the day after, 1 March
--   weekend          a day at a weekend: the same day, the Friday before, or the Monday after
--   cap              how many gifts in a month; null: any number
--   asks_approval    somebody else approves it before it sends anything
--   ahead            in staging: how far the test clock is ahead
--   planned_through  the last day that was planned
--   plan_at          when it is planned again
CREATE SEQUENCE automations_id_seq AS integer;
CREATE TABLE automations (
    customer_id     integer NOT NULL,
    id              integer NOT NULL DEFAULT nextval('automations_id_seq'),
    environment     text NOT NULL CHECK (environment IN ('production', 'staging')),
    name            text NOT NULL,
    user_id         integer NOT NULL,
    occasion        text NOT NULL CHECK (occasion IN ('birthday', 'anniversary', 'first_day', 'joined')),
    group_id        integer,
    years           smallint[] NOT NULL DEFAULT '{}',
    days            smallint,
    template_id     integer NOT NULL,
    account_id      integer,
    zone            text NOT NULL,
    leap_day        text NOT NULL CHECK (leap_day IN ('before', 'after')),
    weekend         text NOT NULL CHECK (weekend IN ('keep', 'before', 'after')),
    cap             integer CHECK (cap > 0),
    asks_approval   boolean NOT NULL,
    approved_by     integer,
    approved_at     timestamptz,
    paused_at       timestamptz,
    ended_at        timestamptz,
    created_at      timestamptz NOT NULL DEFAULT clock_now(),
    ahead           interval NOT NULL DEFAULT '0',
    planned_through date NOT NULL,
    plan_at         timestamptz NOT NULL,
    PRIMARY KEY (customer_id, id),
    CHECK ((occasion = 'joined') = (days IS NOT NULL)),
    CHECK (occasion <> 'joined' OR group_id IS NOT NULL),
    CHECK ((approved_by IS NULL) = (approved_at IS NULL))
);
CREATE INDEX automations_to_plan ON automations (plan_at) WHERE ended_at IS NULL;

-- A gift of an automation to a contact for a day, from the time it is planned. The states:
--   waiting   it is due at `due_at`; `look_at` is when somebody looks at it next
--   placing   its order is being placed, and counts towards the cap; after `look_at` it is tried again
--   placed    there is an order, of the reference `order_reference`
--   skipped   a person, a pause, the cap or a change of the contact prevented it; `reason` says which
--   failed    it could not be placed within three days; `reason` says why
--   missed    nobody looked at it within three days
-- `on_day` is the contact's day, `send_on` the day on which the gift leaves.
CREATE TABLE automation_runs (
    customer_id     integer NOT NULL,
    environment     text NOT NULL,
    automation_id   integer NOT NULL,
    contact_id      integer NOT NULL,
    on_day          date NOT NULL,
    send_on         date NOT NULL,
    due_at          timestamptz NOT NULL,
    look_at         timestamptz NOT NULL,
    state           text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'placing', 'placed', 'skipped', 'failed', 'missed')),
    reason          text,
    order_reference text COLLATE "C",
    ended_at        timestamptz,
    PRIMARY KEY (customer_id, automation_id, contact_id, on_day),
    CHECK ((state = 'placed') = (order_reference IS NOT NULL))
);
CREATE INDEX automation_runs_due ON automation_runs (look_at) WHERE state IN ('waiting', 'placing');
CREATE INDEX automation_runs_by_day ON automation_runs (customer_id, automation_id, send_on, contact_id);
CREATE INDEX automation_runs_ended ON automation_runs (ended_at) WHERE ended_at IS NOT NULL;

-- By which the contacts of a day are found.
CREATE INDEX contacts_by_birthday ON contacts (customer_id, environment, birthday) WHERE birthday IS NOT NULL AND left_at IS NULL;
CREATE INDEX contacts_by_start ON contacts
    (customer_id, environment, (extract(month FROM start_date)::integer * 100 + extract(day FROM start_date)::integer))
    WHERE start_date IS NOT NULL AND left_at IS NULL;
CREATE INDEX contact_members_joined ON contact_members (customer_id, group_id, joined_on);

-- Takes the gifts of automations that are due, of all customers, for a while: the process places them, each as its customer.
CREATE FUNCTION take_automation_runs(wanted_environment text, most integer, for_s double precision)
RETURNS TABLE (customer_id integer, automation_id integer, contact_id integer, on_day date)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        UPDATE automation_runs r SET look_at = clock_now() + for_s * interval '1 second'
        FROM (SELECT d.customer_id, d.automation_id, d.contact_id, d.on_day FROM automation_runs d
              WHERE d.state IN ('waiting', 'placing') AND d.environment = wanted_environment AND d.look_at <= (SELECT clock_now())
              ORDER BY d.look_at LIMIT most FOR UPDATE SKIP LOCKED) AS due
        WHERE (r.customer_id, r.automation_id, r.contact_id, r.on_day)
            = (due.customer_id, due.automation_id, due.contact_id, due.on_day)
        RETURNING r.customer_id, r.automation_id, r.contact_id, r.on_day;
END $$;
