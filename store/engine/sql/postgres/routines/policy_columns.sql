-- The columns of the policies that options give.
CREATE FUNCTION dbjobs.policy_columns(subject text, owner text, options jsonb) RETURNS jsonb
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  c jsonb := '{}';
  p record;
  v jsonb;
  t text;
  other bigint;
BEGIN
  IF jsonb_typeof(options -> 'retry') IN ('number', 'string') THEN -- how often to try again
    options := options || jsonb_build_object('retry', jsonb_build_object('attempts',
      CASE WHEN options ->> 'retry' = 'until-next' THEN options -> 'retry' ELSE to_jsonb(dbjobs.attempts_of(subject, 'retry', options -> 'retry', 1)) END));
  END IF;
  IF jsonb_typeof(options -> 'heartbeat') = 'string' THEN
    options := options || jsonb_build_object('heartbeat', jsonb_build_object('url', options -> 'heartbeat', 'start', NULL, 'success', NULL, 'failure', NULL));
  END IF;
  FOR p IN SELECT split_part(o.key, '.', 1) AS outer_key, array_agg(split_part(o.key, '.', 2)) AS inner_keys FROM dbjobs.policies() o WHERE o.key LIKE '%.%' GROUP BY 1 LOOP
    IF jsonb_typeof(options -> p.outer_key) <> 'null' THEN
      PERFORM dbjobs.check_options(subject || ': ' || p.outer_key, options -> p.outer_key, p.inner_keys);
    END IF;
  END LOOP;
  FOR p IN SELECT o.*, split_part(o.key, '.', 1) AS outer_key, split_part(o.key, '.', 2) AS inner_key FROM dbjobs.policies() o LOOP
    CONTINUE WHEN NOT options ? p.outer_key;
    v := options -> p.outer_key;
    IF p.inner_key <> '' AND jsonb_typeof(v) = 'object' THEN
      CONTINUE WHEN NOT v ? p.inner_key;
      v := v -> p.inner_key;
    END IF;
    IF v = 'null' THEN
      v := p.usual;
    END IF;
    IF v = 'null' THEN
      c := c || jsonb_build_object(p.col, NULL);
      CONTINUE;
    END IF;
    CASE
    WHEN p.kind IN ('text', 'word', 'name', 'hook') THEN
      t := dbjobs.option_text(subject, p.key, v);
      IF p.key = 'description' AND octet_length(t) > 1000 THEN
        RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s: description: has %s bytes; at most 1000 are allowed', subject, octet_length(t)), HINT = 'Give a shorter one.';
      ELSIF p.key <> 'description' AND t = '' THEN
        t := p.usual #>> '{}';
      ELSIF p.kind = 'name' THEN
        PERFORM dbjobs.check_name(subject, p.key, t);
      ELSIF p.kind = 'hook' AND t <> 'none' THEN
        other := dbjobs.other_job(subject, p.key, t, policy_columns.owner);
        SELECT CASE WHEN j.owner = policy_columns.owner AND j.name <> 'none' THEN j.name ELSE dbjobs.full_name(j.owner, j.name) END INTO t
        FROM dbjobs.jobs j WHERE j.id = other;
      END IF;
      IF p.key = 'group' AND NOT EXISTS (SELECT 1 FROM dbjobs.groups g WHERE g.name = t) AND t IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'JB001', MESSAGE = format('%s: there is no group %s', subject, quote_literal(t)), HINT = 'Add it: INSERT INTO dbjobs.groups (name, max_running).';
      END IF;
      v := to_jsonb(t);
    WHEN p.kind IN ('number', 'percent') THEN
      v := to_jsonb(dbjobs.option_number(subject, p.key, v));
      IF p.usual = 'null' AND v = '0' THEN
        v := 'null';
      END IF;
    WHEN p.kind IN ('length', 'again') THEN
      v := to_jsonb(dbjobs.milliseconds(subject, p.key, dbjobs.option_text(subject, p.key, v)));
      IF v = '0' AND p.key IN ('keep.age', 'missed_grace') THEN
        RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s: %s: is zero', subject, p.key), HINT = 'Give a length of time, such as 30d.';
      END IF;
      IF p.usual = 'null' AND v = '0' THEN
        v := 'null';
      END IF;
    WHEN p.kind = 'attempts' THEN
      v := to_jsonb(dbjobs.attempts_of(subject, p.key, v, 0));
    WHEN p.kind = 'instant' THEN
      v := to_jsonb(dbjobs.instant(subject, p.key, dbjobs.option_text(subject, p.key, v)));
    WHEN p.kind = 'tags' THEN
      IF jsonb_typeof(v) = 'string' THEN
        v := jsonb_build_array(v);
      ELSIF jsonb_typeof(v) <> 'array' THEN
        RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s: tags: %s is no list of texts', subject, v), HINT = 'Give a list such as ["nightly"].';
      END IF;
      PERFORM dbjobs.check_name(subject, 'tags', dbjobs.option_text(subject, 'tags', e)) FROM jsonb_array_elements(v) e;
      v := coalesce((SELECT jsonb_agg(e ORDER BY (e #>> '{}') COLLATE "C") FROM jsonb_array_elements(v) e), '[]');
    ELSE
      IF jsonb_typeof(v) <> 'boolean' THEN
        RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s: %s: %s is neither true nor false', subject, p.key, v), HINT = 'Give true or false.';
      END IF;
      IF p.kind = 'off' THEN
        v := to_jsonb(v = 'false');
      END IF;
    END CASE;
    c := c || jsonb_build_object(p.col, v);
  END LOOP;
  RETURN c;
END
$$
;

COMMENT ON FUNCTION dbjobs.policy_columns(text, text, jsonb) IS 'for the other routines: reads the policies of a job'
;
