-- Changes a locked job, unless it is as it should be. The code that takes back what was written must not end with 000: such a code
-- stands for its whole class, and the handler would also catch each JB... that refuses a change.
CREATE FUNCTION dbjobs.change_job(its_id bigint, options jsonb, reason text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  was jsonb := dbjobs.job_document(its_id);
  became jsonb;
BEGIN
  PERFORM dbjobs.put_job('job ' || dbjobs.job_name(its_id), its_id, coalesce(options, '{}'));
  became := dbjobs.job_document(its_id);
  IF became = was THEN
    RAISE EXCEPTION USING ERRCODE = 'JB010', MESSAGE = 'it is as before'; -- takes back what was written
  END IF;
  PERFORM dbjobs.log_change('job', its_id, dbjobs.job_name(its_id), 'change', reason, was, became);
EXCEPTION WHEN SQLSTATE 'JB010' THEN
  RETURN;
END
$$
;

COMMENT ON FUNCTION dbjobs.change_job(bigint, jsonb, text) IS 'for the other routines: changes a job'
;
