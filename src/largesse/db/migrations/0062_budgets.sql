-- Budgets: what a person, people by role, a group of people, a service account or a funding account may spend in one currency and
-- environment. `limit_minor` is a sum for each period (a month or a quarter of UTC, or `total`: in all since `starts_at`), `per_gift_minor` the
-- most that one gift may cost. `subject_id` is a user, a service account or an account, by `kind`. A budget that has ended limits nothing; it
-- stays, as refunds go back to it.
CREATE SEQUENCE budgets_id_seq AS integer;
CREATE TABLE budgets (
    customer_id    integer NOT NULL,
    id             integer NOT NULL DEFAULT nextval('budgets_id_seq'),
    environment    text NOT NULL CHECK (environment IN ('production', 'staging')),
    currency       text NOT NULL,
    name           text NOT NULL,
    kind           text NOT NULL CHECK (kind IN ('person', 'role', 'group', 'service_account', 'account')),
    subject_id     integer,
    role           text CHECK (role IN ('admin', 'member')),
    period         text NOT NULL CHECK (period IN ('month', 'quarter', 'total')),
    limit_minor    bigint CHECK (limit_minor >= 0),
    per_gift_minor bigint CHECK (per_gift_minor > 0),
    starts_at      timestamptz NOT NULL,
    ended_at       timestamptz,
    PRIMARY KEY (customer_id, id),
    CHECK ((kind IN ('person', 'service_account', 'account')) = (subject_id IS NOT NULL)),
    CHECK ((kind = 'role') = (role IS NOT NULL)),
    CHECK (limit_minor IS NOT NULL OR per_gift_minor IS NOT NULL)
);
CREATE INDEX budgets_current ON budgets (customer_id, environment, currency) WHERE ended_at IS NULL;

-- The people of a group.
CREATE TABLE budget_people (
    customer_id integer NOT NULL,
    budget_id   integer NOT NULL,
    user_id     integer NOT NULL,
    PRIMARY KEY (customer_id, budget_id, user_id)
);
CREATE INDEX budget_people_user ON budget_people (customer_id, user_id);

-- What was spent of a budget in the period that starts on a day, less what was refunded. Written and read under the lock of the
-- customer's sales account of that environment and currency, which every order and refund holds.
CREATE TABLE budget_periods (
    customer_id integer NOT NULL,
    budget_id   integer NOT NULL,
    starts_on   date NOT NULL,
    spent_minor bigint NOT NULL CHECK (spent_minor >= 0),
    PRIMARY KEY (customer_id, budget_id, starts_on)
) WITH (fillfactor = 50);

-- Which orders count towards a budget, in which period, and how much of each was refunded.
CREATE TABLE budget_orders (
    customer_id    integer NOT NULL,
    reference      text COLLATE "C" NOT NULL,
    budget_id      integer NOT NULL,
    starts_on      date NOT NULL,
    spent_minor    bigint NOT NULL CHECK (spent_minor > 0),
    refunded_minor bigint NOT NULL DEFAULT 0 CHECK (refunded_minor BETWEEN 0 AND spent_minor),
    PRIMARY KEY (customer_id, reference, budget_id)
);

-- Of a sales account: whether the customer has budgets in its environment and currency. Orders read it with the account.
ALTER TABLE accounts ADD COLUMN has_budgets boolean NOT NULL DEFAULT false;
