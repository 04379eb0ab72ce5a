-- On MySQL no handler runs in a call that is killed, so its transaction stays open, and would have what the session calls next: nobody
-- would commit that. A transaction that a routine begins has the savepoint dbjobs_own, and that of a caller has not.
CREATE PROCEDURE dbjobs_end_killed()
MODIFIES SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: takes back what a killed call of the session has left open'
BEGIN
  DECLARE left_open boolean DEFAULT true;
  DECLARE CONTINUE HANDLER FOR 1305 SET left_open = false;
  ROLLBACK TO SAVEPOINT dbjobs_own;
  IF left_open THEN
    ROLLBACK AND NO CHAIN NO RELEASE;
  END IF;
END
;
