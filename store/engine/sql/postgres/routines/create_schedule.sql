CREATE FUNCTION dbjobs.create_schedule(name text, rule text, zone text DEFAULT NULL, options jsonb DEFAULT NULL, reason text DEFAULT '') RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  subject text := 'schedule ' || coalesce(quote_ident(name), '');
  made bigint;
BEGIN
  PERFORM dbjobs.check_name('schedule', 'name', name);
  PERFORM dbjobs.take_turns();
  made := dbjobs.put_schedule(subject, NULL, name, NULL, dbjobs.schedule_columns(subject, NULL,
    jsonb_build_object('rule', rule) || CASE WHEN zone IS NULL THEN jsonb '{}' ELSE jsonb_build_object('zone', zone) END || coalesce(options, '{}')));
  PERFORM dbjobs.log_change('schedule', made, name, 'create', reason, NULL, dbjobs.schedule_document(made));
  RETURN made;
END
$$
;

COMMENT ON FUNCTION dbjobs.create_schedule(text, text, text, jsonb, text) IS 'creates a schedule that jobs may share; options: nonexistent, ambiguous, calendar, on_holiday, description'
;
