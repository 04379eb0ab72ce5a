CREATE PROCEDURE dbjobs_find_run(IN run text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, OUT its_id char(36) CHARACTER SET ascii COLLATE ascii_bin, OUT of_job bigint, OUT named text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
READS SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: the run of an id, of JOB#NUMBER, or the latest of a job'
BEGIN
  DECLARE me, rest, whose text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE everything boolean;
  CALL dbjobs_me(me, everything);
  SET rest = SUBSTRING_INDEX(run, '#', -1);
  SET its_id = NULL;
  IF rest REGEXP '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$' THEN
    SET its_id = LOWER(rest); -- in the character set of the key: for another one, MariaDB reads all runs
    SELECT MAX(r.id), MAX(r.job_id) INTO its_id, of_job FROM dbjobs_runs r WHERE r.id = its_id;
  ELSEIF LOCATE('#', run) > 0 AND rest REGEXP '^[1-9][0-9]{0,17}$' THEN
    CALL dbjobs_find_job(LEFT(run, CHAR_LENGTH(run) - CHAR_LENGTH(rest) - 1), of_job, named);
    SELECT MAX(r.id) INTO its_id FROM dbjobs_runs r WHERE r.job_id = of_job AND r.number = CAST(rest AS SIGNED);
  ELSE
    CALL dbjobs_find_job(run, of_job, named);
    SET its_id = (SELECT r.id FROM dbjobs_runs r WHERE r.job_id = of_job ORDER BY r.number IS NULL DESC, r.number DESC, r.created_at DESC, r.id DESC LIMIT 1);
  END IF;
  SELECT MAX(CONCAT_WS('/', NULLIF(j.owner, ''), j.name)), MAX(j.owner) INTO named, whose FROM dbjobs_jobs j WHERE j.id = of_job;
  SET named = COALESCE(named, ''); -- the row of the job may be gone
  IF its_id IS NULL OR NOT everything AND NOT COALESCE(whose = me, false) THEN
    CALL dbjobs_refuse('JB001', CONCAT('run ', LEFT(COALESCE(run, 'NULL'), 50), ': not found; give JOB#NUMBER, JOB for its latest run, or an id'));
  END IF;
END
;
