-- Writes the own rule of a job: rule is a text, or an object as of a schedule; zone is beside it. It answers as put_links does.
CREATE FUNCTION dbjobs.put_rule(subject text, its_id bigint, options jsonb) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  own bigint := (SELECT s.id FROM dbjobs.schedules s WHERE s.job_id = its_id);
  given jsonb := '{}';
BEGIN
  IF options -> 'rule' = 'null' OR options -> 'rule' = '""' THEN
    DELETE FROM dbjobs.job_schedules l WHERE l.job_id = its_id AND l.schedule_id = own;
    DELETE FROM dbjobs.schedules s WHERE s.id = own;
    RETURN own IS NOT NULL;
  END IF;
  IF options ? 'rule' THEN
    given := CASE jsonb_typeof(options -> 'rule') WHEN 'object' THEN options -> 'rule' ELSE jsonb_build_object('rule', options -> 'rule') END;
  ELSIF own IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s: zone: the job has no rule of its own', subject), HINT = 'Give rule, too, or change the zone of its schedules.';
  END IF;
  IF options ? 'zone' THEN
    given := given || jsonb_build_object('zone', options -> 'zone');
  END IF;
  given := dbjobs.schedule_columns(subject || ', rule', dbjobs.schedule_document(own) - 'name' - 'manifest', given);
  IF own IS NULL THEN
    own := dbjobs.put_schedule(subject || ', rule', NULL, NULL, its_id, given);
    INSERT INTO dbjobs.job_schedules (job_id, schedule_id) VALUES (its_id, own);
  ELSE
    PERFORM dbjobs.put_schedule(subject || ', rule', own, NULL, NULL, given);
  END IF;
  RETURN false;
END
$$
;

COMMENT ON FUNCTION dbjobs.put_rule(text, bigint, jsonb) IS 'for the other routines: writes the own rule of a job'
;
