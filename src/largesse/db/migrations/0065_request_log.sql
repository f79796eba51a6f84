-- The request log: what API keys have asked of the API, for 30 days. No body, and no query of an address.
--   path         what was sent, with stars for a part that may be a code, a secret or an address; null if it is the route
--   route        the template of the path
--   problem      the end of the problem's address, if the request was refused
--   duration_us  from the head of the request to its answer
-- Rows are written in batches, so ids are in the order of writing. Requests are dropped under load: nothing may rely on the log.
CREATE SEQUENCE api_requests_id_seq;
CREATE TABLE api_requests (
    customer_id integer NOT NULL,
    environment text NOT NULL,
    id          bigint NOT NULL DEFAULT nextval('api_requests_id_seq'),
    at          timestamptz NOT NULL,
    key_id      integer NOT NULL,
    method      text NOT NULL,
    route       text NOT NULL,
    path        text,
    status      smallint NOT NULL,
    problem     text,
    duration_us integer NOT NULL,
    request_id  text NOT NULL,
    address     inet,
    PRIMARY KEY (customer_id, environment, id)
);
-- One for each filter of the list, one for a request id that a caller names, and one for commands and for the removal of old rows.
CREATE INDEX api_requests_of_status ON api_requests (customer_id, environment, (status / 100), id);
CREATE INDEX api_requests_of_method ON api_requests (customer_id, environment, method, id);
CREATE INDEX api_requests_of_key ON api_requests (customer_id, environment, key_id, id);
CREATE INDEX api_requests_of_route ON api_requests (customer_id, environment, route, id);
CREATE INDEX api_requests_of_path ON api_requests (customer_id, environment, path, id) WHERE path IS NOT NULL;
CREATE INDEX api_requests_of_request_id ON api_requests (request_id, at, id);
CREATE INDEX api_requests_at ON api_requests (at, id);
