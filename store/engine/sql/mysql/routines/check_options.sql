CREATE PROCEDURE dbjobs_check_options(IN subject text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN options longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN known longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
READS SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: refuses an option that there is not'
BEGIN
  DECLARE i int DEFAULT 0;
  DECLARE k text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  IF NOT JSON_VALID(options) OR JSON_TYPE(options) <> 'OBJECT' THEN
    CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 50), ': options: want a JSON object, such as JSON_OBJECT("retry", 2)'));
  END IF;
  WHILE i < JSON_LENGTH(options) DO
    SET k = JSON_UNQUOTE(JSON_EXTRACT(JSON_KEYS(options), CONCAT('$[', i, ']')));
    IF NOT JSON_CONTAINS(known, JSON_QUOTE(k)) THEN
      CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 50), ': there is no option "', LEFT(k, 30), '"; the keys are those of a file of jobs'));
    END IF;
    SET i = i + 1;
  END WHILE;
END
;
