CREATE PROCEDURE dbjobs_duration(IN ms bigint, OUT length text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
READS SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: writes a length of time'
BEGIN
  SET length = CASE
    WHEN ms IS NULL THEN NULL
    WHEN ms = 0 THEN '0s'
    WHEN ms % 86400000 = 0 THEN CONCAT(ms DIV 86400000, 'd')
    WHEN ms < 1000 THEN CONCAT(ms, 'ms')
    WHEN ms % 3600000 = 0 THEN CONCAT(ms DIV 3600000, 'h')
    ELSE CONCAT(IF(ms >= 3600000, CONCAT(ms DIV 3600000, 'h'), ''), IF(ms >= 60000, CONCAT(ms DIV 60000 % 60, 'm'), ''),
      IF(ms % 60000 = 0, '', CONCAT(ms DIV 1000 % 60, TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM CONCAT('.', LPAD(ms % 1000, 3, '0')))), 's'))) END;
END
;
