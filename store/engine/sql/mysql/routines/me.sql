-- CURRENT_USER() is the account that migrated: it administers. Where the installation has no owners, everybody with EXECUTE does.
CREATE PROCEDURE dbjobs_me(OUT me text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, OUT everything boolean)
READS SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: who calls, and whether that is somebody who may reach all jobs'
BEGIN
  SET me = CONVERT(LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))) USING utf8mb4);
  SET everything = me = CONVERT(LEFT(CURRENT_USER(), CHAR_LENGTH(CURRENT_USER()) - LOCATE('@', REVERSE(CURRENT_USER()))) USING utf8mb4);
  IF NOT everything THEN
    SET everything = NOT COALESCE((SELECT i.owners FROM dbjobs_installation i WHERE i.id = 1), 0);
  END IF;
END
;
