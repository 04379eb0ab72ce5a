CREATE FUNCTION dbjobs.alter_schedule(schedule text, options jsonb, reason text DEFAULT '') RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  its_id bigint := dbjobs.lock_schedule(schedule);
  was jsonb := dbjobs.schedule_document(its_id);
  c jsonb := dbjobs.schedule_columns('schedule ' || quote_ident(schedule), was - 'name' - 'manifest', options);
BEGIN
  IF was @> (c - 'calendar_version' - CASE WHEN was ? 'calendar' THEN '' ELSE 'on_holiday' END - CASE WHEN was ? 'calendar' THEN '' ELSE 'calendar' END
      - CASE WHEN was ? 'description' THEN '' ELSE 'description' END) AND (was ? 'calendar' OR c ->> 'calendar' = '') AND (was ? 'description' OR c ->> 'description' = '') THEN
    RETURN; -- it is as before
  END IF;
  PERFORM dbjobs.put_schedule('schedule ' || quote_ident(schedule), its_id, NULL, NULL, c);
  PERFORM dbjobs.log_change('schedule', its_id, schedule, 'change', reason, was, dbjobs.schedule_document(its_id));
END
$$
;

COMMENT ON FUNCTION dbjobs.alter_schedule(text, jsonb, text) IS 'changes a schedule in place; options: rule, zone, nonexistent, ambiguous, calendar, on_holiday, description; null is the default'
;
