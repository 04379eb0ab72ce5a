-- The most urgent run, the oldest of these. What another worker has locked is passed over.
-- It begins its own transaction without dbjobs_begin: there is one UPDATE to take back, so a caller's transaction needs no savepoint.
CREATE PROCEDURE dbjobs_take(IN of_queue text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN taker text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN lease int)
MODIFIES SQL DATA SQL SECURITY DEFINER COMMENT 'takes the next run of a queue for lease seconds (NULL: 600): one row, or none'
BEGIN
  DECLARE mine boolean DEFAULT false;
  DECLARE its_id char(36) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE its_job bigint;
  DECLARE its_fence, its_step int;
  DECLARE its_time, its_start, its_end datetime(6);
  DECLARE its_args longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE me text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE everything boolean;
  DECLARE now datetime(6) DEFAULT UTC_TIMESTAMP(6);
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    IF mine THEN
      ROLLBACK;
    END IF;
    RESIGNAL;
  END;
  SET lease = COALESCE(lease, 600);
  IF lease <= 0 THEN
    CALL dbjobs_refuse('JB003', 'take: lease: want seconds, more than 0');
  END IF;
  CALL dbjobs_me(me, everything);
  BEGIN
    DECLARE CONTINUE HANDLER FOR 1305 SET mine = true; -- no savepoint is left outside of a transaction
    SAVEPOINT dbjobs_call;
    RELEASE SAVEPOINT dbjobs_call;
  END;
  IF mine THEN
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    START TRANSACTION;
  END IF;
  IF everything THEN
    SELECT r.id, r.fence + 1, r.job_id, r.step, r.scheduled_for, r.interval_start, r.interval_end, r.args
    INTO its_id, its_fence, its_job, its_step, its_time, its_start, its_end, its_args FROM dbjobs_runs r FORCE INDEX (runs_queued) WHERE r.queued_in = of_queue ORDER BY r.urgency, r.ready_at, r.id LIMIT 1 FOR UPDATE SKIP LOCKED;
  ELSE
    SELECT r.id, r.fence + 1, r.job_id, r.step, r.scheduled_for, r.interval_start, r.interval_end, r.args
    INTO its_id, its_fence, its_job, its_step, its_time, its_start, its_end, its_args FROM dbjobs_runs r FORCE INDEX (runs_queued) WHERE r.queued_in = of_queue AND (SELECT j.owner FROM dbjobs_jobs j WHERE j.id = r.job_id) = me
    ORDER BY r.urgency, r.ready_at, r.id LIMIT 1 FOR UPDATE SKIP LOCKED;
  END IF;
  UPDATE dbjobs_runs r SET r.state = 'running', r.fence = its_fence, r.attempt = r.attempt + 1, r.attempts = r.attempts + 1,
    r.holder = COALESCE(taker, CONCAT(SUBSTRING_INDEX(USER(), '@', 1), '/', CONNECTION_ID())), r.started_at = COALESCE(r.started_at, now), r.lease_until = now + INTERVAL lease SECOND
  WHERE r.id = its_id;
  IF mine THEN
    COMMIT;
  END IF;
  SELECT its_id AS id, its_fence AS fence, its_job AS job_id, its_step AS step, its_time AS scheduled_for, its_start AS interval_start, its_end AS interval_end, its_args AS args
  FROM DUAL WHERE its_id IS NOT NULL;
END
;
