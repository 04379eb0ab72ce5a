CREATE PROCEDURE dbjobs_instant(IN subject text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN field text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN given text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, OUT at datetime(6))
READS SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: reads an instant'
BEGIN
  SET at = NULL;
  IF given REGEXP '^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)? ?([Zz]|[+-][0-9]{2}(:?[0-9]{2})?)$' THEN
    SET at = CONVERT_TZ(CAST(REPLACE(UPPER(TRIM(REGEXP_SUBSTR(given, '^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9:.]+'))), 'T', ' ') AS datetime(6)),
      CASE WHEN given REGEXP '[Zz]$' THEN '+00:00'
        ELSE CONCAT(LEFT(REGEXP_SUBSTR(given, '[+-][0-9]{2}(:?[0-9]{2})?$'), 3), ':', RIGHT(CONCAT('00', SUBSTR(REPLACE(REGEXP_SUBSTR(given, '[+-][0-9]{2}(:?[0-9]{2})?$'), ':', ''), 4)), 2)) END, '+00:00');
  END IF;
  IF at IS NULL THEN
    CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 40), ': ', field, ': "', LEFT(COALESCE(given, ''), 30), '" is no instant such as 2026-12-01T08:00:00Z'));
  END IF;
END
;
