-- Of several with one name, that of the caller. A job of somebody else is not found, unless the caller may reach all.
CREATE PROCEDURE dbjobs_find_job(IN job text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, OUT its_id bigint, OUT named text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
READS SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: the job of a name or of owner/name'
BEGIN
  DECLARE me, whose text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE everything boolean;
  DECLARE n int;
  DECLARE own bigint;
  CALL dbjobs_me(me, everything);
  IF LOCATE('/', job) > 0 THEN
    SET whose = SUBSTRING_INDEX(job, '/', 1);
  END IF;
  SELECT COUNT(*), MAX(j.id), MAX(CASE WHEN j.owner = me THEN j.id END) INTO n, its_id, own FROM dbjobs_jobs j
  WHERE j.live_name = IF(whose IS NULL, job, SUBSTRING(job, LOCATE('/', job) + 1)) AND (whose IS NULL OR j.owner = whose) AND (everything OR j.owner = me);
  IF n = 0 THEN
    CALL dbjobs_refuse('JB001', CONCAT('job ', LEFT(COALESCE(job, 'NULL'), 40), ': not found; give its name, or owner/name of dbjobs_jobs'));
  ELSEIF n > 1 AND own IS NULL THEN
    CALL dbjobs_refuse('JB005', CONCAT('job ', LEFT(job, 40), ': several owners have a job with this name; give owner/name'));
  ELSEIF n > 1 THEN
    SET its_id = own;
  END IF;
  SELECT CONCAT_WS('/', NULLIF(j.owner, ''), j.name) INTO named FROM dbjobs_jobs j WHERE j.id = its_id;
END
;
