CREATE PROCEDURE dbjobs_attempts_of(IN subject text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN field text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN v longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN more int, OUT n int)
READS SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: reads a number of attempts: 1 to 1000, or until-next, which is 0'
BEGIN
  DECLARE t text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT JSON_UNQUOTE(v);
  SET n = CASE WHEN t = 'until-next' THEN 0 WHEN t REGEXP '^[0-9]{1,4}$' THEN IF(t + more BETWEEN 1 AND 1000, t + more, NULL) END;
  IF n IS NULL THEN
    CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 50), ': ', field, ': ', LEFT(v, 20), ' is no number of attempts; give 1 to 1000, or until-next'));
  END IF;
END
;
