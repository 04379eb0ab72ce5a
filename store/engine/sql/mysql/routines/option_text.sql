CREATE PROCEDURE dbjobs_option_text(IN subject text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN field text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN v longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, OUT t text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
READS SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: reads a text of options'
BEGIN
  SET t = NULL;
  IF COALESCE(JSON_TYPE(v), 'NULL') NOT IN ('STRING', 'NULL') THEN
    CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 50), ': ', field, ': ', LEFT(v, 20), ' is no text; give one in quotes'));
  ELSEIF JSON_TYPE(v) = 'STRING' THEN
    SET t = JSON_UNQUOTE(v);
  END IF;
END
;
