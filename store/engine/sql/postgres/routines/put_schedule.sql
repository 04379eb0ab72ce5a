-- Writes a schedule's row: that of its id, or a new one, shared under a name or the own rule of a job. When a rule changes, its new times
-- count from that moment.
CREATE FUNCTION dbjobs.put_schedule(subject text, at_id bigint, named text, of_job bigint, c jsonb) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  broken text;
  now CONSTANT timestamptz := statement_timestamp();
  n CONSTANT dbjobs.schedules := jsonb_populate_record(NULL::dbjobs.schedules, c);
BEGIN
  IF at_id IS NULL THEN
    INSERT INTO dbjobs.schedules (name, job_id, rule, zone, nonexistent, ambiguous, calendar, on_holiday, calendar_version, description, created_at, changed_at)
    VALUES (named, of_job, n.rule, n.zone, n.nonexistent, n.ambiguous, n.calendar, n.on_holiday, n.calendar_version, n.description, now, now)
    RETURNING id INTO at_id;
    RETURN at_id;
  END IF;
  UPDATE dbjobs.schedules s SET changed_at = CASE WHEN (s.rule, s.zone, s.nonexistent, s.ambiguous, s.calendar, s.on_holiday)
      = (n.rule, n.zone, n.nonexistent, n.ambiguous, n.calendar, n.on_holiday) THEN s.changed_at ELSE now END,
    rule = n.rule, zone = n.zone, nonexistent = n.nonexistent, ambiguous = n.ambiguous, calendar = n.calendar, on_holiday = n.on_holiday,
    calendar_version = n.calendar_version, description = n.description
  WHERE s.id = at_id;
  RETURN at_id;
EXCEPTION
  WHEN check_violation THEN
    GET STACKED DIAGNOSTICS broken = CONSTRAINT_NAME;
    PERFORM dbjobs.refuse_check(subject, 'schedules', broken);
  WHEN unique_violation THEN
    RAISE EXCEPTION USING ERRCODE = 'JB002', MESSAGE = format('%s: exists already', subject), HINT = 'dbjobs.alter_schedule changes it.';
END
$$
;

COMMENT ON FUNCTION dbjobs.put_schedule(text, bigint, text, bigint, jsonb) IS 'for the other routines: writes a schedule'
;
