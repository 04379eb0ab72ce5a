CREATE PROCEDURE dbjobs_milliseconds(IN subject text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN field text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN length text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, OUT ms bigint)
READS SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: reads a length of time such as 90s, 1h30m or 7d'
BEGIN
  DECLARE rest, part text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE total decimal(40, 6) DEFAULT 0;
  SET rest = LOWER(length);
  IF rest REGEXP '^([0-9]{1,5} ?d(ays?)?)?( ?([0-9]{1,12}([.][0-9]*)?|[.][0-9]+) ?(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?))*$' AND NOT length REGEXP 'M([^A-Za-z]|$)' AND rest <> '' THEN
    WHILE rest <> '' DO
      SET rest = TRIM(rest);
      SET part = REGEXP_SUBSTR(rest, '^[0-9.]+');
      SET rest = TRIM(SUBSTR(rest, CHAR_LENGTH(part) + 1));
      SET total = total + CAST(part AS decimal(30, 6)) * CASE WHEN rest REGEXP '^mi?l?l?i?s' THEN 1 WHEN rest LIKE 's%' THEN 1000 WHEN rest LIKE 'm%' THEN 60000 WHEN rest LIKE 'h%' THEN 3600000 ELSE 86400000 END;
      SET rest = SUBSTR(rest, CHAR_LENGTH(REGEXP_SUBSTR(rest, '^[a-z]+')) + 1);
    END WHILE;
  ELSEIF COALESCE(rest, '') <> '0' THEN
    CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 40), ': ', field, ': "', LEFT(COALESCE(length, ''), 20), '" is no length of time; give 90s, 1h30m or 30d'));
  END IF;
  IF total > 0 AND total < 1 OR total > 3153600000000 THEN
    CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 40), ': ', field, ': "', LEFT(length, 20), '" is not between 1ms and 36500d'));
  END IF;
  SET ms = FLOOR(total);
END
;
