-- A schedule that is to be changed, and nobody else changes it.
CREATE FUNCTION dbjobs.lock_schedule(schedule text) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  its_id bigint;
BEGIN
  PERFORM dbjobs.take_turns();
  its_id := dbjobs.schedule_id(schedule);
  PERFORM s.id FROM dbjobs.schedules s WHERE s.id = its_id FOR UPDATE;
  RETURN dbjobs.schedule_id(schedule); -- removed this moment
END
$$
;

COMMENT ON FUNCTION dbjobs.lock_schedule(text) IS 'for the other routines: locks a schedule'
;
