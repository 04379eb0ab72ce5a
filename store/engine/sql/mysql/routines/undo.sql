CREATE PROCEDURE dbjobs_undo(IN mine boolean)
MODIFIES SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: takes back what a routine did'
BEGIN
  DECLARE CONTINUE HANDLER FOR 1305 BEGIN END; -- the server has rolled back all of the transaction, as after a deadlock
  IF mine THEN
    ROLLBACK AND NO CHAIN NO RELEASE;
  ELSE
    ROLLBACK TO SAVEPOINT dbjobs_call;
  END IF;
END
;
