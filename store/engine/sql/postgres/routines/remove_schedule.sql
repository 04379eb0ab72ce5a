CREATE FUNCTION dbjobs.remove_schedule(its_id bigint, reason text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  was jsonb := dbjobs.schedule_document(its_id);
BEGIN
  UPDATE dbjobs.pauses p SET resumed_at = statement_timestamp(), resumed_by = session_user
  WHERE p.scope = 'schedule' AND p.subject_id = its_id AND p.resumed_at IS NULL AND p.ends_at > statement_timestamp();
  DELETE FROM dbjobs.schedules s WHERE s.id = its_id;
  PERFORM dbjobs.log_change('schedule', its_id, was ->> 'name', 'remove', reason, was, NULL);
END
$$
;

COMMENT ON FUNCTION dbjobs.remove_schedule(bigint, text) IS 'for the other routines: removes a schedule'
;
