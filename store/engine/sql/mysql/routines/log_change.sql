CREATE PROCEDURE dbjobs_log_change(IN kind text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN subject_id bigint, IN subject text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN action text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN reason text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN was longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN became longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: writes to the change log'
BEGIN
  IF LENGTH(reason) > 1000 THEN
    CALL dbjobs_refuse('JB003', 'change log: reason: has more than 1000 bytes; give a shorter one');
  END IF;
  DO LAST_INSERT_ID(0);
  INSERT INTO dbjobs_changes (changed_by, kind, subject_id, subject, action, reason, was, became)
  VALUES (LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), kind, subject_id, subject, action, COALESCE(reason, ''), was, became);
  IF LAST_INSERT_ID() = 0 THEN
    CALL dbjobs_refuse('JB004', 'insert_id is set in this session, and the server numbers the rows here; call from another session');
  END IF;
END
;
