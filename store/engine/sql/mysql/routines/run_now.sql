-- See Store.RunNow (store/request.go). Run ids are UUIDv7 of the request: they sort by time.
CREATE PROCEDURE dbjobs_run_now(IN job text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN args longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN at datetime(6), IN request_key text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN reason text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER COMMENT 'requests a run of a job, and returns its id; a second request with one key gets the run of the first; at is in UTC'
BEGIN
  DECLARE mine boolean;
  DECLARE its_id, removable bigint;
  DECLARE made, old char(36) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE named, instant, kind text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE became longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE i int DEFAULT 0;
  DECLARE now datetime(6) DEFAULT UTC_TIMESTAMP(6);
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    CALL dbjobs_undo(mine);
    RESIGNAL;
  END;
  CALL dbjobs_begin(mine);
  CALL dbjobs_find_job(job, its_id, named);
  SELECT MAX(j.id) INTO removable FROM dbjobs_jobs j WHERE j.id = its_id AND j.remove_when_done;
  IF removable IS NOT NULL THEN -- see jobToRun (store/request.go)
    SELECT MAX(p.job_id) INTO removable FROM dbjobs_plans p WHERE p.job_id = removable FOR UPDATE;
    CALL dbjobs_find_job(job, its_id, named);
  END IF;
  CALL dbjobs_still_there(mine, 'job', job, its_id);
  IF LENGTH(request_key) > 186 OR request_key REGEXP '[[:cntrl:]]' OR CHAR_LENGTH(TRIM(request_key)) <> CHAR_LENGTH(request_key) THEN -- to <>, a blank at the end is nothing
    CALL dbjobs_refuse('JB003', CONCAT('job ', LEFT(named, 40), ': key: has more than 186 bytes, a control character, or a blank around it'));
  END IF;
  IF NOT COALESCE(JSON_VALID(args), true) OR COALESCE(JSON_TYPE(args), 'NULL') NOT IN ('OBJECT', 'NULL') THEN
    CALL dbjobs_refuse('JB003', CONCAT('job ', LEFT(named, 40), ': args: want an object of texts, such as JSON_OBJECT("day", "2026-11-19")'));
  END IF;
  IF JSON_TYPE(args) = 'NULL' OR JSON_LENGTH(args) = 0 THEN
    SET args = NULL;
  END IF;
  WHILE i < COALESCE(JSON_LENGTH(args), 0) DO
    IF JSON_TYPE(JSON_EXTRACT(args, CONCAT('$.', JSON_EXTRACT(JSON_KEYS(args), CONCAT('$[', i, ']'))))) <> 'STRING' THEN
      CALL dbjobs_refuse('JB003', CONCAT('job ', LEFT(named, 40), ': args: want an object of texts, such as JSON_OBJECT("day", "2026-11-19")'));
    END IF;
    SET i = i + 1;
  END WHILE;
  IF at NOT BETWEEN '1000-01-01' AND '9999-12-31 23:59:59' OR MONTH(at) = 0 OR DAYOFMONTH(at) = 0 THEN -- a session that is not strict gives zeros for what is no instant
    CALL dbjobs_refuse('JB003', CONCAT('job ', LEFT(named, 40), ': at: is no instant between the years 1000 and 9999; give another'));
  END IF;
  SET made = UUID();
  SET made = CONCAT(INSERT(LPAD(LOWER(HEX(FLOOR(UNIX_TIMESTAMP(NOW(3)) * 1000))), 12, '0'), 9, 0, '-'), '-7', RIGHT(LPAD(HEX(FLOOR(RAND() * 4096)), 3, '0'), 3), '-a', SUBSTR(LPAD(LOWER(HEX(FLOOR(RAND() * 4096))), 3, '0'), 1, 3), '-', RIGHT(SHA2(made, 256), 12));
  SET made = LOWER(made);
  IF COALESCE(request_key, '') <> '' THEN
    SELECT MAX(r.id) INTO old FROM dbjobs_runs r WHERE r.job_id = its_id AND r.occurrence = CONCAT('key:', request_key);
  END IF;
  IF old IS NULL THEN
    INSERT INTO dbjobs_runs (id, job_id, occurrence, queue, priority, scheduled_for, args, ready_at, created_at)
    SELECT made, j.id, IF(COALESCE(request_key, '') <> '', CONCAT('key:', request_key), CONCAT('now:', made)), j.queue, j.priority, at, args, GREATEST(now, COALESCE(at, now)), now
    FROM dbjobs_jobs j WHERE j.id = its_id ON DUPLICATE KEY UPDATE job_id = dbjobs_runs.job_id;
    IF COALESCE(request_key, '') <> '' THEN -- somebody else may have been first
      SELECT MAX(r.id) INTO old FROM dbjobs_runs r WHERE r.job_id = its_id AND r.occurrence = CONCAT('key:', request_key) FOR UPDATE;
    END IF;
    IF COALESCE(old, made) = made THEN
      CALL dbjobs_instant_text(at, instant);
      SET became = JSON_OBJECT('run', made);
      IF args IS NOT NULL THEN
        SET became = JSON_SET(became, '$.args', JSON_EXTRACT(args, '$'));
      END IF;
      IF at IS NOT NULL THEN
        SET became = JSON_SET(became, '$.at', instant);
      END IF;
      IF COALESCE(request_key, '') <> '' THEN
        SET became = JSON_SET(became, '$.key', request_key);
      END IF;
      CALL dbjobs_log_change('job', its_id, named, 'run-now', reason, NULL, became);
    END IF;
  END IF;
  CALL dbjobs_done(mine);
  SELECT COALESCE(old, made) AS run_id;
END
;
