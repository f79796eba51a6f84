-- A send that a person puts together in the web application. Its id is the reference that its order will have. It goes when it is
-- sent, or two weeks after it was last changed.
CREATE TABLE drafts (
    customer_id integer NOT NULL,
    environment text NOT NULL CHECK (environment IN ('production', 'staging')),
    id          text COLLATE "C" NOT NULL,
    user_id     integer NOT NULL,
    content     jsonb NOT NULL,
    created_at  timestamptz NOT NULL,
    changed_at  timestamptz NOT NULL,
    PRIMARY KEY (customer_id, environment, id)
);
CREATE INDEX drafts_person ON drafts (customer_id, environment, user_id, changed_at);
CREATE INDEX drafts_changed ON drafts (changed_at);

-- The rows of the file, or of the cells that were pasted or typed, which a draft's recipients come from, as they were given.
CREATE TABLE draft_rows (
    customer_id integer NOT NULL,
    environment text NOT NULL,
    draft_id    text COLLATE "C" NOT NULL,
    number      integer NOT NULL,
    cells       text[] NOT NULL,
    PRIMARY KEY (customer_id, environment, draft_id, number),
    FOREIGN KEY (customer_id, environment, draft_id) REFERENCES drafts ON DELETE CASCADE
);

-- Which column was chosen to be what, for files of the headings that `heading` is a hash of.
CREATE TABLE draft_columns (
    customer_id integer NOT NULL,
    heading     bytea NOT NULL CHECK (length(heading) = 32),
    columns     jsonb NOT NULL,
    used_at     timestamptz NOT NULL,
    PRIMARY KEY (customer_id, heading)
);
