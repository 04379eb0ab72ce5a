-- Those who edit definitions as a whole come one after the other: see takeTurns (store/apply.go).
CREATE PROCEDURE dbjobs_take_turns()
MODIFIES SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: waits for others who edit definitions'
BEGIN
  DECLARE version int;
  SELECT i.version INTO version FROM dbjobs_installation i WHERE i.id = 1 FOR UPDATE;
END
;
