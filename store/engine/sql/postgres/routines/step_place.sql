-- The place of a step among those of a job, from 1.
CREATE FUNCTION dbjobs.step_place(its_id bigint, step text) RETURNS integer
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  names text[] := (SELECT array_agg(s.name ORDER BY s.position) FROM dbjobs.steps s WHERE s.job_id = its_id);
BEGIN
  IF array_position(names, step) IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'JB001', MESSAGE = format('job %s: there is no step %s; there are %s', dbjobs.job_name(its_id), coalesce(quote_literal(step), 'NULL'),
      coalesce(array_to_string(names, ', '), 'none')), HINT = 'Give the name of a step.';
  END IF;
  RETURN array_position(names, step);
END
$$
;

COMMENT ON FUNCTION dbjobs.step_place(bigint, text) IS 'for the other routines: the place of a step'
;
