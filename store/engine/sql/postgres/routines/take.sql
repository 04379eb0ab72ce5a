-- Takes the most urgent run of a queue, the oldest of these: one row, or none. A row that another worker has locked is passed over.
-- In a freeze there is none: no pass decides then, so the runs stay queued.
-- holder is NULL for the session itself. In plpgsql, the plan of the statement is kept for the session.
CREATE FUNCTION dbjobs.take(queue text, holder text DEFAULT NULL, lease interval DEFAULT '10 minutes')
RETURNS TABLE (id uuid, fence integer, job_id bigint, step integer, scheduled_for timestamptz, interval_start timestamptz, interval_end timestamptz, args jsonb)
LANGUAGE plpgsql ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  lease := coalesce(lease, '10 minutes');
  IF lease <= interval '0' OR lease > interval '1000 years' THEN
    RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('take: lease: %s is no time to work', lease), HINT = 'Give an interval, such as ''10 minutes''.';
  END IF;
  RETURN QUERY
  UPDATE dbjobs.runs AS r SET state = 'running', fence = r.fence + 1, attempt = r.attempt + 1, attempts = r.attempts + 1,
    holder = coalesce(take.holder, session_user || '/' || pg_backend_pid()), started_at = coalesce(r.started_at, statement_timestamp()), lease_until = statement_timestamp() + lease
  WHERE r.state = 'queued' AND r.id = (SELECT q.id FROM dbjobs.runs q WHERE q.state = 'queued' AND q.queue = take.queue
      AND NOT EXISTS (SELECT 1 FROM dbjobs.pauses p WHERE p.scope = 'all' AND p.resumed_at IS NULL AND p.ends_at > statement_timestamp())
    ORDER BY q.priority DESC, q.ready_at, q.id LIMIT 1 FOR UPDATE SKIP LOCKED)
  RETURNING r.id, r.fence, r.job_id, r.step, r.scheduled_for, r.interval_start, r.interval_end, r.args;
END
$$
;

COMMENT ON FUNCTION dbjobs.take(text, text, interval) IS 'takes the next run of a queue for as long as the lease; no row says that there is none'
;
