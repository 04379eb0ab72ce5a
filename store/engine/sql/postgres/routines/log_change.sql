-- A row of the change log, by the session's login.
CREATE FUNCTION dbjobs.log_change(kind text, subject_id bigint, subject text, action text, reason text, was jsonb, became jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF octet_length(reason) > 1000 THEN
    RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('change log: reason: has %s bytes; at most 1000 are allowed', octet_length(reason)),
      HINT = 'Give a shorter reason.';
  END IF;
  INSERT INTO dbjobs.changes (changed_by, kind, subject_id, subject, action, reason, was, became)
  VALUES (session_user, log_change.kind, log_change.subject_id, log_change.subject, log_change.action, coalesce(log_change.reason, ''), log_change.was, log_change.became);
END
$$
;

COMMENT ON FUNCTION dbjobs.log_change(text, bigint, text, text, text, jsonb, jsonb) IS 'for the other routines: writes to the change log'
;
