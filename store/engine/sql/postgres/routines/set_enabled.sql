CREATE FUNCTION dbjobs.set_enabled(job_id bigint, enabled boolean, action text, reason text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  was jsonb := dbjobs.job_document(job_id);
BEGIN
  UPDATE dbjobs.jobs j SET enabled = set_enabled.enabled, changed_at = statement_timestamp() WHERE j.id = set_enabled.job_id;
  PERFORM dbjobs.log_change('job', job_id, dbjobs.job_name(job_id), action, reason, was, dbjobs.job_document(job_id));
END
$$
;

COMMENT ON FUNCTION dbjobs.set_enabled(bigint, boolean, text, text) IS 'for the other routines: enables or disables a job'
;
