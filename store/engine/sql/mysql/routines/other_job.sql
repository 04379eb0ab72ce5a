-- Of the same owner first.
CREATE PROCEDURE dbjobs_other_job(IN subject text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN field text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN name text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN of_owner text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, OUT its_id bigint, OUT its_owner text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, OUT its_name text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
READS SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: the job that another one names'
BEGIN
  DECLARE me, whose text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE everything boolean;
  DECLARE n int;
  CALL dbjobs_me(me, everything);
  IF LOCATE('/', name) > 0 THEN
    SET whose = SUBSTRING_INDEX(name, '/', 1);
  END IF;
  SET its_id = (SELECT MAX(j.id) FROM dbjobs_jobs j WHERE j.live_name = name AND j.owner = of_owner AND (everything OR j.owner = me));
  IF its_id IS NULL THEN
    SELECT COUNT(*), MAX(j.id) INTO n, its_id FROM dbjobs_jobs j
    WHERE j.live_name = IF(whose IS NULL, name, SUBSTRING(name, LOCATE('/', name) + 1)) AND (whose IS NULL OR j.owner = whose) AND (everything OR j.owner = me);
    IF n = 0 THEN
      CALL dbjobs_refuse('JB001', CONCAT(LEFT(subject, 40), ': ', field, ': job ', LEFT(COALESCE(name, 'NULL'), 30), ': not found; give a name, or owner/name'));
    ELSEIF n > 1 THEN
      CALL dbjobs_refuse('JB005', CONCAT(LEFT(subject, 40), ': ', field, ': job ', LEFT(name, 30), ': several owners have it; give owner/name'));
    END IF;
  END IF;
  SELECT j.owner, j.name INTO its_owner, its_name FROM dbjobs_jobs j WHERE j.id = its_id;
END
;
