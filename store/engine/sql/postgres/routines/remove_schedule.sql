CREATE FUNCTION dbjobs.remove_schedule(its_id bigint, reason text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  was jsonb := dbjobs.schedule_document(its_id);
BEGIN
  DELETE FROM dbjobs.schedules s WHERE s.id = its_id;
  PERFORM dbjobs.log_change('schedule', its_id, was ->> 'name', 'remove', reason, was, NULL);
END
$$
;

COMMENT ON FUNCTION dbjobs.remove_schedule(bigint, text) IS 'for the other routines: removes a schedule'
;
