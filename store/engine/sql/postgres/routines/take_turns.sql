-- Those who edit definitions as a whole come one after the other: see takeTurns (store/apply.go).
CREATE FUNCTION dbjobs.take_turns() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM i.version FROM dbjobs.installation i WHERE i.id = 1 FOR UPDATE;
END
$$
;

COMMENT ON FUNCTION dbjobs.take_turns() IS 'for the other routines: waits for others who edit definitions'
;
