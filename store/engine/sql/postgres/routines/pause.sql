-- See Store.Pause (store/pause.go).
CREATE FUNCTION dbjobs.pause(subject text DEFAULT NULL, scope text DEFAULT 'job', until timestamptz DEFAULT NULL, reason text DEFAULT '') RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  what record;
  paused timestamptz;
  made bigint;
BEGIN
  scope := coalesce(scope, 'job');
  what := dbjobs.pause_subject(scope, subject);
  PERFORM dbjobs.still_there(scope, what.subject_id);
  IF scope = 'owner' AND NOT EXISTS (SELECT 1 FROM dbjobs.jobs j WHERE j.removed_at IS NULL AND j.owner = pause.subject)
    OR scope = 'tag' AND NOT EXISTS (SELECT 1 FROM dbjobs.jobs j WHERE j.removed_at IS NULL AND j.tags @> jsonb_build_array(pause.subject)) THEN
    RAISE EXCEPTION USING ERRCODE = 'JB001', MESSAGE = format('%s %s: no job has it', scope, quote_ident(subject)),
      HINT = 'Give one that a job has: SELECT owner, name, tags FROM dbjobs.jobs WHERE removed_at IS NULL.';
  END IF;
  paused := dbjobs.open_pause(scope, what.subject_id, what.named);
  IF paused IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'JB002', MESSAGE = format('%s: paused since %s', what.logged, dbjobs.instant_text(paused)), HINT = 'dbjobs.resume ends that pause.';
  END IF;
  IF until <= statement_timestamp() OR until > timestamptz '9999-12-31T23:59:59Z' THEN
    RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s: until: %s is in the past, or after the year 9999', what.logged, until), HINT = 'Give an instant to come, or none.';
  END IF;
  INSERT INTO dbjobs.pauses (scope, subject_id, subject, reason, paused_by, since, until_at)
  VALUES (pause.scope, what.subject_id, what.named, coalesce(pause.reason, ''), session_user, statement_timestamp(), pause.until) RETURNING id INTO made;
  PERFORM dbjobs.log_change(what.kind, what.subject_id, what.logged, 'pause', reason, NULL,
    CASE WHEN until IS NULL THEN jsonb '{}' ELSE jsonb_build_object('until', dbjobs.instant_text(until)) END);
  RETURN made;
END
$$
;

COMMENT ON FUNCTION dbjobs.pause(text, text, timestamptz, text) IS 'holds a job, or by scope a schedule, the jobs with a tag or of an owner, or all, until an instant or until dbjobs.resume'
;
