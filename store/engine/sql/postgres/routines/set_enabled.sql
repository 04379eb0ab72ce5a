CREATE FUNCTION dbjobs.set_enabled(job_id bigint, enabled boolean, action text, reason text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  was jsonb;
BEGIN
  PERFORM j.id FROM dbjobs.jobs j WHERE j.id = set_enabled.job_id AND j.removed_at IS NULL FOR UPDATE; -- what others change meanwhile is not this change
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'JB001', MESSAGE = format('job %s: not found', dbjobs.job_name(job_id)), HINT = 'It was removed just now.';
  END IF;
  was := dbjobs.job_document(job_id);
  UPDATE dbjobs.jobs j SET enabled = set_enabled.enabled, changed_at = statement_timestamp() WHERE j.id = set_enabled.job_id;
  PERFORM dbjobs.log_change('job', job_id, dbjobs.job_name(job_id), action, reason, was, dbjobs.job_document(job_id));
END
$$
;

COMMENT ON FUNCTION dbjobs.set_enabled(bigint, boolean, text, text) IS 'for the other routines: enables or disables a job'
;
