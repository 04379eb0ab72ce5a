-- A job with one step that is SQL, or with steps among the options; rule is its own, and schedules among the options are shared ones.
CREATE FUNCTION dbjobs.create_job(name text, sql text DEFAULT NULL, rule text DEFAULT NULL, options jsonb DEFAULT NULL, reason text DEFAULT '') RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  subject text;
  its_owner text;
  made bigint;
BEGIN
  options := coalesce(options, '{}');
  PERFORM dbjobs.check_name('job', 'name', name);
  IF jsonb_typeof(options) <> 'object' THEN
    RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('job %s: options: %s is no JSON object', name, options), HINT = 'Give an object, such as {"retry": 2}.';
  END IF;
  its_owner := coalesce(nullif(dbjobs.option_text('job ' || name, 'owner', options -> 'owner'), ''), session_user);
  PERFORM dbjobs.check_name('job ' || name, 'owner', its_owner);
  subject := 'job ' || dbjobs.full_name(its_owner, name);
  PERFORM dbjobs.take_turns();
  BEGIN
    INSERT INTO dbjobs.jobs (owner, name) VALUES (its_owner, create_job.name) RETURNING id INTO made;
  EXCEPTION WHEN unique_violation THEN
    RAISE EXCEPTION USING ERRCODE = 'JB002', MESSAGE = format('%s: exists already', subject), HINT = 'dbjobs.alter_job changes it.';
  END;
  options := options - 'owner' || CASE WHEN sql IS NULL THEN jsonb '{}' ELSE jsonb_build_object('sql', sql) END
    || CASE WHEN rule IS NULL THEN jsonb '{}' ELSE jsonb_build_object('rule', CASE jsonb_typeof(options -> 'rule') WHEN 'object' THEN options -> 'rule' ELSE '{}' END || jsonb_build_object('rule', rule)) END;
  IF NOT options ?| ARRAY['sql', 'steps'] THEN
    RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s: the job does nothing', subject), HINT = 'Give sql, or steps among the options.';
  END IF;
  PERFORM dbjobs.put_job(subject, made, options);
  PERFORM dbjobs.log_change('job', made, dbjobs.full_name(its_owner, name), 'create', reason, NULL, dbjobs.job_document(made));
  RETURN made;
END
$$
;

COMMENT ON FUNCTION dbjobs.create_job(text, text, text, jsonb, text) IS 'creates a job, and returns its id; options have the keys of a job in a file'
;
