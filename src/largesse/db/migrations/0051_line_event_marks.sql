-- Marks of events of lines (docs/decisions/0031-marks-of-orders-and-lines.md): a copy of each event that moved a line, in the order in which the worker
-- learned of them, chained. An event that is removed or changed differs from its copy. Written by the worker alone, by one at a time.
CREATE TABLE line_event_marks (
    number      bigint PRIMARY KEY,
    customer_id integer NOT NULL,
    order_id    integer NOT NULL,
    line        integer NOT NULL,
    event       text NOT NULL,
    at          timestamptz NOT NULL,
    mac         bytea NOT NULL,
    UNIQUE (customer_id, order_id, line, event)
);
CREATE TRIGGER line_event_marks_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON line_event_marks
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Where that chain ends: the number of its last mark, and what the next is made of.
CREATE TABLE line_event_head (
    one    boolean PRIMARY KEY DEFAULT true CHECK (one),
    number bigint NOT NULL,
    head   bytea NOT NULL
);
INSERT INTO line_event_head (number, head) VALUES (0, '\x00000000000000000000000000000000');
CREATE TRIGGER line_event_head_grows BEFORE UPDATE ON line_event_head
    FOR EACH ROW WHEN (NEW.number <= OLD.number) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER line_event_head_stays BEFORE DELETE OR TRUNCATE ON line_event_head
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- What became of lines before: the worker marks it as it takes these orders in.
INSERT INTO order_changes (customer_id, order_id, changed_at)
SELECT customer_id, order_id, (SELECT clock_now()) FROM (
    SELECT DISTINCT customer_id, order_id FROM line_events WHERE event <> 'opened') AS moved;
