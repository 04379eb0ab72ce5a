CREATE FUNCTION dbjobs.schedule_id(schedule text) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  found bigint;
BEGIN
  SELECT s.id INTO found FROM dbjobs.schedules s WHERE s.name = schedule_id.schedule;
  IF found IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'JB001', MESSAGE = format('schedule %s: not found', coalesce(quote_ident(schedule), 'NULL')),
      HINT = 'Give the name of a schedule: SELECT name FROM dbjobs.schedules WHERE name IS NOT NULL.';
  END IF;
  RETURN found;
END
$$
;

COMMENT ON FUNCTION dbjobs.schedule_id(text) IS 'the id of a shared schedule'
;
