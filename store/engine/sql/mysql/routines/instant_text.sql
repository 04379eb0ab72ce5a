CREATE PROCEDURE dbjobs_instant_text(IN at datetime(6), OUT given text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
READS SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: writes an instant'
BEGIN
  SET given = CONCAT(TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM DATE_FORMAT(at, '%Y-%m-%dT%H:%i:%s.%f'))), 'Z');
END
;
