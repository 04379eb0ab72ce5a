-- See Store.RemoveJob (store/change.go) and removeJobs (store/leave.go).
CREATE FUNCTION dbjobs.drop_job(job text, reason text DEFAULT '') RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  its_id bigint := dbjobs.lock_job(job);
  was jsonb := dbjobs.job_document(its_id);
  follower text;
BEGIN
  SELECT dbjobs.full_name(f.owner, f.name) INTO follower FROM dbjobs.job_after a JOIN dbjobs.jobs f ON f.id = a.job_id
  WHERE a.after_job_id = its_id AND f.removed_at IS NULL ORDER BY f.name, f.owner LIMIT 1;
  IF follower IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'JB004', MESSAGE = format('job %s: cannot be removed: job %s runs after it and would never run again', dbjobs.job_name(its_id), follower),
      HINT = 'Remove after from that job, or drop that job first.';
  END IF;
  SELECT dbjobs.full_name(f.owner, f.name) INTO follower FROM dbjobs.jobs f WHERE f.removed_at IS NULL AND f.id <> its_id
    AND (f.owner = was ->> 'owner' AND was ->> 'name' IN (f.on_failed, f.on_recovered, f.on_missed, f.on_late, f.on_lost, f.on_parked, f.on_paused)
      OR dbjobs.full_name(was ->> 'owner', was ->> 'name') IN (f.on_failed, f.on_recovered, f.on_missed, f.on_late, f.on_lost, f.on_parked, f.on_paused))
  ORDER BY f.name, f.owner LIMIT 1;
  IF follower IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'JB004', MESSAGE = format('job %s: cannot be removed: it is the hook of job %s', dbjobs.job_name(its_id), follower),
      HINT = 'Remove it from on of that job, or drop that job first.';
  END IF;
  UPDATE dbjobs.pauses p SET resumed_at = statement_timestamp(), resumed_by = session_user
  WHERE p.scope = 'job' AND p.subject_id = its_id AND p.resumed_at IS NULL AND p.ends_at > statement_timestamp();
  UPDATE dbjobs.jobs j SET removed_at = statement_timestamp() WHERE j.id = its_id AND j.removed_at IS NULL;
  DELETE FROM dbjobs.job_schedules l WHERE l.job_id = its_id;
  DELETE FROM dbjobs.schedules s WHERE s.job_id = its_id;
  DELETE FROM dbjobs.job_ends e WHERE e.job_id = its_id AND jsonb_array_length(was -> 'after') > 1;
  PERFORM dbjobs.log_change('job', its_id, dbjobs.full_name(was ->> 'owner', was ->> 'name'), 'remove', reason, was, NULL);
END
$$
;

COMMENT ON FUNCTION dbjobs.drop_job(text, text) IS 'removes a job; its history stays until it is pruned'
;
