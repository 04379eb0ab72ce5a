CREATE PROCEDURE dbjobs_check_name(IN subject text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN field text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN name text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
READS SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: refuses what is no name'
BEGIN
  DECLARE problem text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT CASE
    WHEN COALESCE(name, '') = '' THEN 'is empty'
    WHEN LENGTH(name) > 190 THEN 'has more than 190 bytes'
    WHEN name REGEXP '[[:cntrl:]]' THEN 'holds a control character'
    WHEN name REGEXP '^[[:space:]]|[[:space:]]$' OR TRIM(name) <> name THEN 'begins or ends with a space'
    WHEN LEFT(name, 1) = '-' THEN 'begins with a hyphen, as a flag of a command does'
    WHEN LOCATE('/', name) > 0 THEN 'holds a slash, which separates owner and name' END;
  IF problem IS NOT NULL THEN
    CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 40), ': ', field, ': "', LEFT(COALESCE(name, ''), 30), '" ', problem));
  END IF;
END
;
