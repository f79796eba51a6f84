-- The orders that an erasure found are rows, so that a step reads one of them instead of all.
--   number  in which order they are erased, from 0
--   found   [customer, order, lines, those of the lines that are sent to the address, whether texts have it]
-- In erasure_jobs, `orders` counts them, and is null until the search is over. `texts` counts those whose texts have the address.
CREATE TABLE erasure_orders (
    job_id integer REFERENCES erasure_jobs ON DELETE CASCADE,
    number integer,
    found  jsonb NOT NULL,
    PRIMARY KEY (job_id, number)
);
ALTER TABLE erasure_jobs ADD COLUMN orders integer, ADD COLUMN texts integer NOT NULL DEFAULT 0;
INSERT INTO erasure_orders (job_id, number, found)
SELECT id, number - 1, one.found
FROM erasure_jobs CROSS JOIN jsonb_array_elements(erasure_jobs.found) WITH ORDINALITY AS one (found, number);
UPDATE erasure_jobs SET orders = jsonb_array_length(found), texts = (
    SELECT count(*) FROM erasure_orders AS one WHERE one.job_id = erasure_jobs.id AND (one.found ->> 4)::boolean)
WHERE found IS NOT NULL;
ALTER TABLE erasure_jobs DROP COLUMN found;
