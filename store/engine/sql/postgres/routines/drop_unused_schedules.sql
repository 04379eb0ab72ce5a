CREATE FUNCTION dbjobs.drop_unused_schedules(reason text DEFAULT '') RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  s record;
  n integer := 0;
BEGIN
  PERFORM dbjobs.take_turns();
  FOR s IN SELECT c.id FROM dbjobs.schedules c WHERE c.name IS NOT NULL AND NOT EXISTS (SELECT 1 FROM dbjobs.job_schedules l WHERE l.schedule_id = c.id) ORDER BY c.name LOOP
    PERFORM dbjobs.remove_schedule(s.id, reason);
    n := n + 1;
  END LOOP;
  RETURN n;
END
$$
;

COMMENT ON FUNCTION dbjobs.drop_unused_schedules(text) IS 'removes all schedules that no job uses, and returns how many'
;
