CREATE PROCEDURE dbjobs_done(IN mine boolean)
MODIFIES SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: ends what is done whole'
BEGIN
  DECLARE CONTINUE HANDLER FOR 1305 BEGIN END;
  IF mine THEN
    COMMIT;
  ELSE
    RELEASE SAVEPOINT dbjobs_call;
  END IF;
END
;
