-- See Store.Resume (store/pause.go).
CREATE FUNCTION dbjobs.resume(subject text DEFAULT NULL, scope text DEFAULT 'job', missed boolean DEFAULT false, reason text DEFAULT '') RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  what record;
BEGIN
  scope := coalesce(scope, 'job');
  missed := coalesce(missed, false);
  what := dbjobs.pause_subject(scope, subject);
  UPDATE dbjobs.pauses p SET resumed_at = statement_timestamp(), resumed_by = session_user, missed = resume.missed
  WHERE p.scope = resume.scope AND (p.subject_id = what.subject_id OR what.subject_id IS NULL) AND (what.named IS NULL OR p.subject = what.named)
    AND p.resumed_at IS NULL AND (p.until_at IS NULL OR p.until_at > statement_timestamp());
  IF NOT FOUND AND dbjobs.open_pause(scope, what.subject_id, what.named) IS NOT NULL THEN -- every login sees those of a tag and of all
    RAISE EXCEPTION USING ERRCODE = 'JB004', MESSAGE = format('%s: the pause concerns jobs of other logins', what.logged), HINT = 'Ask the administrator to end it.';
  ELSIF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'JB004', MESSAGE = format('%s: not paused', what.logged), HINT = 'SELECT * FROM dbjobs.pauses WHERE resumed_at IS NULL shows the pauses.';
  END IF;
  PERFORM dbjobs.log_change(what.kind, what.subject_id, what.logged, 'resume', reason, NULL, CASE WHEN missed THEN jsonb '{"missed": true}' ELSE jsonb '{}' END);
END
$$
;

COMMENT ON FUNCTION dbjobs.resume(text, text, boolean, text) IS 'ends a pause; with missed, what fell due meanwhile counts as if there had been none, except before an edit of the times of the job'
;
