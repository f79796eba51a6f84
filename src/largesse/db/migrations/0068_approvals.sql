-- Rules by which a person's send waits until others have approved it. A condition that is null or empty is no condition; a rule without any is about
-- every send. `approver_ids` are users, none for any administrator; `needed` is how many of them approve. A rule that has ended is about
-- nothing any more.
CREATE SEQUENCE approval_rules_id_seq AS integer;
CREATE TABLE approval_rules (
    customer_id    integer NOT NULL,
    id             integer NOT NULL DEFAULT nextval('approval_rules_id_seq'),
    environment    text NOT NULL CHECK (environment IN ('production', 'staging')),
    name           text NOT NULL,
    role           text CHECK (role IN ('admin', 'member')),
    currency       text,
    above_minor    bigint CHECK (above_minor >= 0),
    beyond_budget  boolean NOT NULL,
    account_ids    integer[] NOT NULL,
    product_ids    integer[] NOT NULL,
    collection_ids integer[] NOT NULL,
    approver_ids   integer[] NOT NULL,
    needed         smallint NOT NULL CHECK (needed IN (1, 2)),
    expires_days   smallint NOT NULL CHECK (expires_days BETWEEN 1 AND 10),
    created_at     timestamptz NOT NULL DEFAULT clock_now(),
    ended_at       timestamptz,
    PRIMARY KEY (customer_id, id),
    CHECK ((above_minor IS NULL) = (currency IS NULL))
);
CREATE INDEX approval_rules_current ON approval_rules (customer_id, environment) WHERE ended_at IS NULL;

-- A send that waits for approval, or did: the draft of its id, as it was quoted. `digest` is of what was quoted, and an order is placed
-- under the approval only if it is that, at that price. The states:
--   waiting    people may approve or decline it until `expires_at`
--   approved   it is sent under this approval, if it was not sent yet: then there is an order of its id
--   declined   somebody declined it
--   withdrawn  its person took it back, or asked again after a change
--   expired    nobody decided in time
-- Asking again makes a row waiting again, in its next round.
CREATE TABLE approval_requests (
    customer_id      integer NOT NULL,
    environment      text NOT NULL CHECK (environment IN ('production', 'staging')),
    id               text COLLATE "C" NOT NULL,
    round            integer NOT NULL DEFAULT 1,
    user_id          integer NOT NULL,
    state            text NOT NULL CHECK (state IN ('waiting', 'approved', 'declined', 'withdrawn', 'expired')),
    rule_ids         integer[] NOT NULL,
    quote            text NOT NULL,
    digest           bytea NOT NULL,
    total_minor      bigint NOT NULL,
    currency         text NOT NULL,
    gift_name        text NOT NULL,
    code_count       integer NOT NULL,
    draft_changed_at timestamptz NOT NULL,
    asked_at         timestamptz NOT NULL,
    expires_at       timestamptz NOT NULL,
    ended_at         timestamptz,
    PRIMARY KEY (customer_id, environment, id)
);
CREATE INDEX approval_requests_newest ON approval_requests (customer_id, environment, asked_at);
CREATE INDEX approval_requests_waiting ON approval_requests (expires_at) WHERE state = 'waiting';
CREATE INDEX approval_requests_ended ON approval_requests (ended_at) WHERE ended_at IS NOT NULL;

-- Who approved or declined it, in which round. A decision never changes.
CREATE TABLE approval_decisions (
    customer_id integer NOT NULL,
    environment text NOT NULL,
    request_id  text COLLATE "C" NOT NULL,
    round       integer NOT NULL,
    user_id     integer NOT NULL,
    approves    boolean NOT NULL,
    note        text NOT NULL DEFAULT '',
    decided_at  timestamptz NOT NULL DEFAULT clock_now(),
    PRIMARY KEY (customer_id, environment, request_id, round, user_id),
    FOREIGN KEY (customer_id, environment, request_id) REFERENCES approval_requests ON DELETE CASCADE
);

-- `approval_asked` tells an approver that a send waits, `approval_ended` tells its sender how it ended. The texts are read when the mail
-- is sent.
ALTER TABLE people_mails
    ADD COLUMN request_id text COLLATE "C",
    DROP CONSTRAINT people_mails_kind_check,
    DROP CONSTRAINT people_mails_check,
    ADD CONSTRAINT people_mails_kind_check CHECK (
        kind IN ('invitation', 'reset', 'new_device', 'low_balance', 'test', 'second_step', 'approval_asked', 'approval_ended')),
    ADD CONSTRAINT people_mails_check CHECK (
        (kind IN ('invitation', 'low_balance', 'test', 'approval_asked', 'approval_ended')) = (user_id IS NOT NULL)
        AND (user_id IS NULL) = (person_id IS NOT NULL)
        AND (kind = 'low_balance') = (account_id IS NOT NULL) AND (kind = 'test') = (content IS NOT NULL)
        AND (kind IN ('approval_asked', 'approval_ended')) = (request_id IS NOT NULL)
        AND (kind = 'second_step') = (change IS NOT NULL));
