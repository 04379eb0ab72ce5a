-- CONVERT_TZ would leave an instant outside of the years 1970 to 2037 as it is on MariaDB, and knows no offset beyond +13:00 there.
CREATE PROCEDURE dbjobs_instant(IN subject text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN field text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN given text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, OUT at datetime(6))
READS SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: reads an instant'
BEGIN
  DECLARE ahead text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT COALESCE(REPLACE(REGEXP_SUBSTR(given, '[+-][0-9]{2}(:?[0-9]{2})?$'), ':', ''), '');
  SET at = NULL;
  IF given REGEXP '^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)? ?([Zz]|[+-](0[0-9]|1[0-5])(:?[0-5][0-9])?)$' THEN
    SET at = CAST(REPLACE(UPPER(TRIM(REGEXP_SUBSTR(given, '^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9:.]+'))), 'T', ' ') AS datetime(6))
      - INTERVAL IF(ahead = '', 0, IF(LEFT(ahead, 1) = '-', -1, 1) * (SUBSTR(ahead, 2, 2) * 60 + RIGHT(CONCAT('00', SUBSTR(ahead, 4)), 2))) MINUTE;
  END IF;
  IF at NOT BETWEEN '1000-01-01' AND '9999-12-31 23:59:59' THEN
    CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 40), ': ', field, ': "', LEFT(given, 30), '" is not between the years 1000 and 9999'));
  ELSEIF at IS NULL THEN
    CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 40), ': ', field, ': "', LEFT(COALESCE(given, ''), 30), '" is no instant such as 2026-12-01T08:00:00Z'));
  END IF;
END
;
