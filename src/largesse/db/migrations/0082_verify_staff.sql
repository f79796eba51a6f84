-- What `verify` asks about the back office, whose tables it may not read: the ids of rows that the audit log does not confirm.

-- Active members of staff whom nobody invited, or whose role nobody gave them.
CREATE FUNCTION staff_unrecorded() RETURNS SETOF integer
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT s.id FROM staff s
    LEFT JOIN (
        SELECT DISTINCT ON (lower(subject)) lower(subject) AS email, act, after ->> 'role' AS role FROM audit_events
        WHERE customer_id = 0 AND act IN ('staff.invited', 'staff.role_changed', 'staff.deactivated')
        ORDER BY lower(subject), id DESC
    ) AS last ON last.email = lower(s.email)
    WHERE s.is_active AND (last.act <> 'staff.deactivated' AND last.role = s.role) IS NOT TRUE
$$;

-- Privacy requests marked as done that nobody finished, and erasures without a receipt.
CREATE FUNCTION privacy_requests_unrecorded() RETURNS SETOF integer
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT p.id FROM privacy_requests p
    WHERE p.done_at IS NOT NULL AND ((p.kind = 'erase' AND p.outcome = 'done') <> (p.erasure_id IS NOT NULL) OR NOT EXISTS (
        SELECT FROM audit_events e
        WHERE e.customer_id = 0 AND CASE WHEN p.erasure_id IS NULL
            THEN e.act = 'privacy_request.done' AND e.subject = 'privacy request ' || p.id AND e.after ->> 'outcome' = p.outcome
            ELSE e.act = 'privacy.erased' AND e.subject = 'erasure ' || p.erasure_id AND e.after ->> 'request' = p.id::text END))
$$;
