-- A schedule as the change log has it.
CREATE FUNCTION dbjobs.schedule_document(id bigint) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT jsonb_strip_nulls(jsonb_build_object('name', coalesce(s.name, ''), 'rule', s.rule, 'zone', s.zone, 'nonexistent', s.nonexistent, 'ambiguous', s.ambiguous,
    'calendar', nullif(s.calendar, ''), 'on_holiday', CASE WHEN s.calendar <> '' THEN s.on_holiday END,
    'description', nullif(s.description, ''), 'manifest', CASE WHEN s.name IS NOT NULL THEN s.manifest END))
  FROM dbjobs.schedules s WHERE s.id = schedule_document.id
$$
;

COMMENT ON FUNCTION dbjobs.schedule_document(bigint) IS 'for the other routines: a schedule as the change log has it'
;
