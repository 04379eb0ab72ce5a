-- A routine does all or nothing: in a transaction of its own, or from a savepoint in the caller's, who commits it. Outside of a
-- transaction there is no savepoint after SAVEPOINT (error 1305), and that is how it is found out.
-- A session's completion_type may have another transaction follow each COMMIT and ROLLBACK, or end the session: AND NO CHAIN NO RELEASE,
-- at each of them, leaves the session as it was.
-- The caller's transaction may see the database as it was when it began. So what a routine writes back, or decides by, it reads with a
-- lock, or in a SET or an IF, which lock what they read: all of these read what is there now. With innodb_snapshot_isolation of
-- MariaDB, such a read of what has changed since fails (1020), and the server undoes all of the caller's transaction.
CREATE PROCEDURE dbjobs_begin(OUT mine boolean)
MODIFIES SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: begins what is done whole or not at all'
BEGIN
  DECLARE CONTINUE HANDLER FOR 1305 SET mine = true;
  SET mine = false;
  -- A session may say which number its next row gets, also where a definer writes it. The last one of all would leave none for others.
  -- On MySQL, 0 looks like none: so what makes a row sets LAST_INSERT_ID to 0 before, and refuses what is still 0 then.
  IF @@insert_id <> 0 THEN
    CALL dbjobs_refuse('JB004', 'insert_id is set in this session, and the server numbers the rows here; call from another session');
  END IF;
  CALL dbjobs_end_killed();
  SAVEPOINT dbjobs_call;
  ROLLBACK TO SAVEPOINT dbjobs_call;
  IF mine THEN
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    START TRANSACTION;
    SAVEPOINT dbjobs_own;
  END IF;
END
;
