-- The most urgent run, the oldest of these. What another worker has locked is passed over.
-- In a freeze there is none: no pass decides then, so the runs stay queued.
-- It begins its own transaction without dbjobs_begin: there is one UPDATE to take back, so a caller's transaction needs no savepoint.
-- Whether one is open is found out by SET TRANSACTION, which is refused then (1568).
--
-- The index begins with what was taken a moment ago and is not yet purged, and to lock or to read a version of each of these costs a
-- look at its row: on MariaDB 150 to 1,100 pages for a run. READ UNCOMMITTED passes over them. So a first read, by the index alone,
-- names a candidate, and a transaction at READ COMMITTED locks it by its place in that index, if it is as it was. The places are
-- locked in the order of an UPDATE that goes through the index, so that the two meet in no deadlock. If another worker has it, the next
-- candidate comes after it. Within the transaction of a caller, whose snapshot may be old, the statement that locks also finds the run;
-- with innodb_snapshot_isolation of MariaDB it may fail instead (1020), as dbjobs_begin says.
CREATE PROCEDURE dbjobs_take(IN of_queue text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN taker text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN lease int)
MODIFIES SQL DATA SQL SECURITY DEFINER COMMENT 'takes the next run of a queue for lease seconds (NULL: 600): one row, or none'
BEGIN
  DECLARE mine boolean DEFAULT @@autocommit = 1;
  DECLARE begun boolean DEFAULT false;
  DECLARE deadlocks int DEFAULT 0;
  DECLARE its_id, candidate, passed char(36) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE its_job, its_urgency bigint;
  DECLARE its_fence, its_step int;
  DECLARE its_ready, its_time, its_start, its_end datetime(6);
  DECLARE its_args longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE me text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE everything, frozen boolean;
  DECLARE now datetime(6) DEFAULT UTC_TIMESTAMP(6);
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    IF begun THEN
      ROLLBACK AND NO CHAIN NO RELEASE;
    END IF;
    RESIGNAL;
  END;
  SET lease = COALESCE(lease, 600);
  IF lease <= 0 THEN
    CALL dbjobs_refuse('JB003', 'take: lease: want seconds, more than 0');
  END IF;
  CALL dbjobs_end_killed();
  CALL dbjobs_me(me, everything);
  taking: WHILE true DO
    BEGIN
      DECLARE CONTINUE HANDLER FOR 1568 SET mine = false;
      DECLARE EXIT HANDLER FOR 1213
      BEGIN
        IF NOT mine OR deadlocks >= 10 THEN
          RESIGNAL;
        END IF;
        SET deadlocks = deadlocks + 1, candidate = NULL, its_id = NULL;
        ROLLBACK AND NO CHAIN NO RELEASE;
        DO SLEEP(deadlocks * deadlocks / 1000); -- so that the other goes on first
      END;
      SET passed = candidate, candidate = NULL;
      IF mine THEN
        SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
      END IF;
      IF mine THEN
        SELECT q.urgency, q.ready_at, q.id INTO its_urgency, its_ready, candidate FROM dbjobs_runs q FORCE INDEX (runs_queued)
        WHERE q.queued_in = of_queue AND (everything OR (SELECT j.owner FROM dbjobs_jobs j WHERE j.id = q.job_id) = me) AND (passed IS NULL OR q.urgency > its_urgency
          OR q.urgency = its_urgency AND (q.ready_at > its_ready OR q.ready_at = its_ready AND q.id > passed))
        ORDER BY q.urgency, q.ready_at, q.id LIMIT 1;
        IF candidate IS NULL THEN
          LEAVE taking;
        END IF;
        SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
        START TRANSACTION;
        SAVEPOINT dbjobs_own;
        SET begun = true;
        SELECT COUNT(*) > 0 INTO frozen FROM dbjobs_pauses p WHERE p.scope = 'all' AND p.resumed_at IS NULL AND p.ends_at > now; -- waits for no edit of a pause
        IF frozen THEN
          COMMIT AND NO CHAIN NO RELEASE;
          LEAVE taking;
        END IF;
        SELECT r.id, r.fence + 1, r.job_id, r.step, r.scheduled_for, r.interval_start, r.interval_end, r.args
        INTO its_id, its_fence, its_job, its_step, its_time, its_start, its_end, its_args FROM dbjobs_runs r FORCE INDEX (runs_queued)
        WHERE r.queued_in = of_queue AND r.urgency = its_urgency AND r.ready_at = its_ready AND r.id = candidate AND (everything OR (SELECT j.owner FROM dbjobs_jobs j WHERE j.id = r.job_id) = me) FOR UPDATE SKIP LOCKED;
      ELSE
        SET frozen = EXISTS (SELECT 1 FROM dbjobs_pauses p WHERE p.scope = 'all' AND p.resumed_at IS NULL AND p.ends_at > now); -- what is there now
        IF frozen THEN
          LEAVE taking;
        END IF;
        SELECT r.id, r.fence + 1, r.job_id, r.step, r.scheduled_for, r.interval_start, r.interval_end, r.args
        INTO its_id, its_fence, its_job, its_step, its_time, its_start, its_end, its_args FROM dbjobs_runs r FORCE INDEX (runs_queued)
        WHERE r.queued_in = of_queue AND (everything OR (SELECT j.owner FROM dbjobs_jobs j WHERE j.id = r.job_id) = me) ORDER BY r.urgency, r.ready_at, r.id LIMIT 1 FOR UPDATE SKIP LOCKED;
      END IF;
      IF its_id IS NOT NULL THEN
        UPDATE dbjobs_runs r SET r.state = 'running', r.fence = its_fence, r.attempt = r.attempt + 1, r.attempts = r.attempts + 1,
          r.holder = COALESCE(taker, CONCAT(LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), '/', CONNECTION_ID())), r.started_at = COALESCE(r.started_at, now), r.lease_until = now + INTERVAL lease SECOND
        WHERE r.id = its_id;
      END IF;
      IF mine THEN
        COMMIT AND NO CHAIN NO RELEASE;
      END IF;
      IF its_id IS NOT NULL OR NOT mine THEN
        LEAVE taking;
      END IF;
    END;
  END WHILE;
  SELECT its_id AS id, its_fence AS fence, its_job AS job_id, its_step AS step, its_time AS scheduled_for, its_start AS interval_start, its_end AS interval_end, its_args AS args
  FROM DUAL WHERE its_id IS NOT NULL;
END
;
