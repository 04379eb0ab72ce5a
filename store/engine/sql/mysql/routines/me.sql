-- CURRENT_USER() is the account that migrated: it administers. Where the installation has no owners, everybody with EXECUTE does.
CREATE PROCEDURE dbjobs_me(OUT me text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, OUT everything boolean)
READS SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: who calls, and whether that is somebody who may reach all jobs'
BEGIN
  SET me = CONVERT(LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))) USING utf8mb4);
  SET everything = me = CONVERT(LEFT(CURRENT_USER(), CHAR_LENGTH(CURRENT_USER()) - LOCATE('@', REVERSE(CURRENT_USER()))) USING utf8mb4);
  IF NOT everything THEN
    -- In a SET, this would wait for those who edit definitions: see dbjobs_take_turns. A worker must not.
    SELECT NOT COALESCE(MAX(i.owners), 0) INTO everything FROM dbjobs_installation i WHERE i.id = 1;
  END IF;
END
;
