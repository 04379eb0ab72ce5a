CREATE PROCEDURE dbjobs_sorted_texts(IN subject text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN field text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN v longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, OUT list longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: reads a list of names'
BEGIN
  DECLARE i int DEFAULT 0;
  DECLARE t text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE at_end boolean DEFAULT false;
  DECLARE texts CURSOR FOR SELECT x.t FROM JSON_TABLE(v, '$[*]' COLUMNS (t varchar(190) PATH '$')) AS x ORDER BY CAST(x.t AS binary);
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET at_end = true;
  IF JSON_TYPE(v) = 'STRING' THEN
    SET v = JSON_ARRAY(JSON_UNQUOTE(v));
  ELSEIF JSON_TYPE(v) <> 'ARRAY' THEN
    CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 50), ': ', field, ': ', LEFT(v, 20), ' is no list of texts; give JSON_ARRAY("nightly")'));
  END IF;
  WHILE i < JSON_LENGTH(v) DO
    CALL dbjobs_option_text(subject, field, JSON_EXTRACT(v, CONCAT('$[', i, ']')), t);
    CALL dbjobs_check_name(subject, field, t);
    SET i = i + 1;
  END WHILE;
  SET list = ''; -- as the program writes it: a decision compares the text
  OPEN texts;
  FETCH texts INTO t;
  WHILE NOT at_end DO
    SET list = CONCAT_WS(',', NULLIF(list, ''), JSON_QUOTE(t));
    FETCH texts INTO t;
  END WHILE;
  CLOSE texts;
  SET list = CONCAT('[', list, ']');
END
;
