-- The columns of a step that is given as in a file, or as in a document of a job.
CREATE FUNCTION dbjobs.step_columns(subject text, n integer, step jsonb) RETURNS jsonb
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  named text;
  spec jsonb := step -> 'spec';
  of_sql jsonb;
  c jsonb;
BEGIN
  PERFORM dbjobs.check_options(format('%s, step %s', subject, n), step,
    ARRAY['name', 'sql', 'args', 'atomic', 'fail_if', 'target', 'executor', 'spec', 'timeout', 'retry', 'on_success', 'on_failure']);
  named := coalesce(dbjobs.option_text(subject || ': steps', 'name', step -> 'name'), 'step ' || n);
  subject := format('%s, step %s', subject, named);
  PERFORM dbjobs.check_name(subject, 'name', named);
  SELECT jsonb_object_agg(e.key, e.value) INTO of_sql FROM jsonb_each(step) e
  WHERE e.key IN ('sql', 'args', 'atomic', 'fail_if', 'target') AND e.value <> 'null' AND e.value <> 'false';
  IF of_sql IS NOT NULL THEN
    IF spec IS NOT NULL OR NOT of_sql ? 'sql' THEN
      RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s: a step has either sql or executor and spec', subject), HINT = 'Give "sql": "DELETE ...".';
    END IF;
    spec := of_sql || jsonb_build_object('sql', CASE jsonb_typeof(of_sql -> 'sql') WHEN 'array' THEN of_sql -> 'sql' ELSE jsonb_build_array(of_sql -> 'sql') END);
    spec := spec || jsonb_build_object('sql', (SELECT jsonb_agg(CASE jsonb_typeof(e) WHEN 'string' THEN to_jsonb(btrim(e #>> '{}', E' \t\r\n')) ELSE e END ORDER BY o)
      FROM jsonb_array_elements(spec -> 'sql') WITH ORDINALITY AS s(e, o)));
    IF EXISTS (SELECT 1 FROM jsonb_array_elements(CASE jsonb_typeof(spec -> 'sql') WHEN 'array' THEN spec -> 'sql' ELSE '[""]' END) e
        WHERE e = '""' OR jsonb_typeof(e) NOT IN ('string', 'object')) THEN
      RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s: sql: %s is no statement', subject, step -> 'sql'), HINT = 'Give a text, or a list of texts.';
    END IF;
  ELSIF jsonb_typeof(spec) IS DISTINCT FROM 'object' OR coalesce(dbjobs.option_text(subject, 'executor', step -> 'executor'), '') = '' THEN
    RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s: the step does nothing', subject), HINT = 'Give "sql": "DELETE ...", or executor and spec as dbjobs job show --json prints them.';
  END IF;
  c := dbjobs.policy_columns(subject, '', jsonb_strip_nulls(jsonb_build_object('timeout', step -> 'timeout', 'retry', step -> 'retry')));
  RETURN c || jsonb_build_object('position', n, 'name', named, 'executor', CASE WHEN of_sql IS NULL THEN step ->> 'executor' ELSE 'sql' END, 'spec', spec,
    'on_success', coalesce(dbjobs.option_text(subject, 'on_success', step -> 'on_success'), 'next'),
    'on_failure', coalesce(dbjobs.option_text(subject, 'on_failure', step -> 'on_failure'), 'fail'));
END
$$
;

COMMENT ON FUNCTION dbjobs.step_columns(text, integer, jsonb) IS 'for the other routines: reads a step'
;
