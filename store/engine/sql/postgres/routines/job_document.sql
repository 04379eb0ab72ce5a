-- A job as the change log has it: what is at its default of nothing is left out.
CREATE FUNCTION dbjobs.job_document(id bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
RETURN (WITH j AS (
  SELECT j.*, to_jsonb(j) AS row FROM dbjobs.jobs j WHERE j.id = job_document.id
), read AS (
  SELECT split_part(p.key, '.', 1) AS outer_key, split_part(p.key, '.', 2) AS inner_key, p.kind, j.row -> p.col AS v, j.row ->> p.col AS t
  FROM j CROSS JOIN dbjobs.policies() p
), p AS (
  SELECT outer_key, inner_key, CASE
    WHEN t IS NULL THEN NULL
    WHEN kind = 'off' THEN CASE WHEN t = 'false' THEN jsonb 'true' END
    WHEN kind = 'flag' THEN CASE WHEN t = 'true' THEN jsonb 'true' END
    WHEN kind = 'number' THEN CASE WHEN t <> '0' THEN v END
    WHEN kind = 'percent' THEN v
    WHEN kind = 'attempts' THEN to_jsonb(CASE WHEN t = '0' THEN 'until-next' ELSE t END)
    WHEN kind = 'again' THEN to_jsonb(dbjobs.duration(t::bigint))
    WHEN kind = 'length' THEN CASE WHEN t <> '0' THEN to_jsonb(dbjobs.duration(t::bigint)) END
    WHEN kind = 'instant' THEN to_jsonb(dbjobs.instant_text(t::timestamptz))
    WHEN kind = 'tags' THEN (SELECT jsonb_agg(e ORDER BY (e #>> '{}') COLLATE "C") FROM jsonb_array_elements(v) e WHERE jsonb_typeof(e) = 'string')
    WHEN t = '' THEN NULL
    ELSE v END AS value
  FROM read
), parts AS (
  SELECT outer_key, value FROM p WHERE inner_key = '' AND value IS NOT NULL
  UNION ALL
  SELECT outer_key, jsonb_object_agg(inner_key, value) FROM p WHERE inner_key <> '' AND value IS NOT NULL GROUP BY outer_key
)
SELECT coalesce((SELECT jsonb_object_agg(outer_key, value) FROM parts), '{}')
  || jsonb_strip_nulls(jsonb_build_object('owner', j.owner, 'name', j.name, 'manifest', j.manifest,
    'start_zone', CASE WHEN j.start_rule <> '' THEN coalesce(nullif(j.start_zone, ''), 'UTC') END,
    'schedules', (SELECT jsonb_agg(s.name ORDER BY s.name COLLATE "C") FROM dbjobs.job_schedules l JOIN dbjobs.schedules s ON s.id = l.schedule_id
      WHERE l.job_id = j.id AND s.name IS NOT NULL),
    'own', (SELECT dbjobs.schedule_document(s.id) || jsonb '{"jobs": 0}' FROM dbjobs.schedules s WHERE s.job_id = j.id),
    'after', (SELECT jsonb_agg(jsonb_build_object('job', f.job, 'on', f.on_end) ORDER BY f.job COLLATE "C", f.after_job_id)
      FROM (SELECT a.after_job_id, a.on_end, coalesce(CASE WHEN o.owner = j.owner THEN o.name ELSE dbjobs.full_name(o.owner, o.name) END,
          format('job %s, whose row is gone', a.after_job_id)) AS job
        FROM dbjobs.job_after a LEFT JOIN dbjobs.jobs o ON o.id = a.after_job_id WHERE a.job_id = j.id) f)))
  || jsonb_build_object('steps', coalesce((SELECT jsonb_agg(
      jsonb_strip_nulls(jsonb_build_object('name', t.name, 'executor', t.executor, 'on_success', t.on_success, 'on_failure', t.on_failure,
        'timeout', dbjobs.duration(t.timeout_ms),
        'retry', nullif(jsonb_strip_nulls(jsonb_build_object('attempts', CASE WHEN t.retry_attempts = 0 THEN 'until-next' ELSE t.retry_attempts::text END,
          'backoff', dbjobs.duration(t.retry_backoff_ms), 'max_backoff', dbjobs.duration(t.retry_max_backoff_ms), 'jitter', t.retry_jitter)), '{}')))
      || jsonb_build_object('spec', t.spec) ORDER BY t.position) FROM dbjobs.steps t WHERE t.job_id = j.id), 'null'))
FROM j);
END
$$
;

COMMENT ON FUNCTION dbjobs.job_document(bigint) IS 'for the other routines: a job as the change log has it'
;
