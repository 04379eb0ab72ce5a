-- Writes what options give of a job, in the order in which the program writes it.
CREATE FUNCTION dbjobs.put_job(subject text, its_id bigint, options jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  j dbjobs.jobs;
  was dbjobs.jobs;
  c jsonb;
  is_now jsonb;
  of_sql CONSTANT text[] := ARRAY['sql', 'args', 'atomic', 'fail_if', 'target'];
  broken text;
  touched boolean := false;
BEGIN
  PERFORM dbjobs.check_options(subject, options, (SELECT array_agg(DISTINCT split_part(p.key, '.', 1)) FROM dbjobs.policies() p)
    || ARRAY['rule', 'zone', 'schedule', 'schedules', 'after', 'steps'] || of_sql);
  SELECT * INTO j FROM dbjobs.jobs WHERE id = its_id;
  IF options ? 'start' AND NOT options ? 'start_zone' THEN -- the one that it has, or the zone of the rule; without a start, none
    options := options || jsonb_build_object('start_zone', CASE WHEN options ->> 'start' <> '' THEN coalesce(nullif(j.start_zone, ''), options #>> '{rule,zone}', options ->> 'zone',
      (SELECT s.zone FROM dbjobs.schedules s WHERE s.job_id = its_id), 'UTC') END);
  END IF;
  c := dbjobs.policy_columns(subject, j.owner, options);
  was := j;
  j := jsonb_populate_record(j, c);
  IF j.start_rule <> '' THEN
    IF c -> 'not_before' <> 'null' THEN
      RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s: start: cannot be combined with not_before', subject), HINT = 'Give one of them, and null for the other.';
    END IF;
    -- A decision finds it anew, if the start has changed or, before it has come, the zone.
    j.not_before := CASE WHEN j.start_rule = was.start_rule AND (was.not_before <= statement_timestamp()
      OR coalesce(nullif(j.start_zone, ''), 'UTC') = coalesce(nullif(was.start_zone, ''), 'UTC')) THEN was.not_before END;
  ELSIF was.start_rule <> '' AND NOT c ? 'not_before' THEN
    j.not_before := NULL;
  END IF;
  UPDATE dbjobs.jobs t SET changed_at = statement_timestamp(),
    @column = j.@column
  WHERE t.id = its_id;
  IF options ?| of_sql THEN -- what a step that is SQL already has, stays
    is_now := coalesce(dbjobs.job_document(its_id) #> '{steps,0}', '{}');
    IF NOT options ? 'sql' AND is_now ->> 'executor' IS DISTINCT FROM 'sql' THEN
      RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s: args, atomic, fail_if and target belong to sql', subject), HINT = 'Give sql, too, or change a step with dbjobs.alter_step.';
    END IF;
    IF options ? 'steps' OR (SELECT count(*) FROM dbjobs.steps s WHERE s.job_id = its_id) > 1 THEN
      RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s: sql: there are steps', subject), HINT = 'Give steps alone, or change one with dbjobs.alter_step.';
    END IF;
    options := options || jsonb_build_object('steps', jsonb_build_array(CASE WHEN is_now ->> 'executor' = 'sql' THEN is_now -> 'spec' ELSE '{}' END || (is_now - 'executor' - 'spec')
      || (SELECT jsonb_object_agg(o.key, o.value) FROM jsonb_each(options) o WHERE o.key = ANY (of_sql))));
  END IF;
  IF options ? 'steps' THEN
    PERFORM dbjobs.put_steps(subject, its_id, options -> 'steps');
  END IF;
  IF options ? 'after' THEN
    PERFORM dbjobs.put_after(subject, its_id, j.owner, options -> 'after');
  END IF;
  IF options ?| ARRAY['schedule', 'schedules'] THEN
    touched := dbjobs.put_links(subject, its_id, CASE WHEN options ? 'schedules' THEN options -> 'schedules' ELSE options -> 'schedule' END);
  END IF;
  IF options ?| ARRAY['rule', 'zone'] THEN
    touched := dbjobs.put_rule(subject, its_id, options) OR touched;
  END IF;
  IF touched THEN
    UPDATE dbjobs.jobs t SET planned = t.planned || '.' WHERE t.id = its_id;
  END IF;
EXCEPTION WHEN check_violation THEN
  GET STACKED DIAGNOSTICS broken = CONSTRAINT_NAME;
  PERFORM dbjobs.refuse_check(subject, 'jobs', broken);
WHEN numeric_value_out_of_range THEN
  RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s: %s', subject, SQLERRM), HINT = 'Give a smaller number.';
END
$$
;

COMMENT ON FUNCTION dbjobs.put_job(text, bigint, jsonb) IS 'for the other routines: writes a job'
;
