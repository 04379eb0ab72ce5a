-- The most urgent run, the oldest of these. What another worker has locked is passed over.
CREATE PROCEDURE dbjobs_take(IN of_queue text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN taker text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN lease int)
MODIFIES SQL DATA SQL SECURITY DEFINER COMMENT 'takes the next run of a queue for lease seconds (NULL: 600): one row, or none'
BEGIN
  DECLARE mine boolean;
  DECLARE its_id char(36) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE me text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE everything boolean;
  DECLARE now datetime(6) DEFAULT UTC_TIMESTAMP(6);
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    CALL dbjobs_undo(mine);
    RESIGNAL;
  END;
  CALL dbjobs_begin(mine);
  SET lease = COALESCE(lease, 600);
  IF lease <= 0 THEN
    CALL dbjobs_refuse('JB003', 'take: lease: want seconds, more than 0');
  END IF;
  CALL dbjobs_me(me, everything);
  IF everything THEN
    SELECT r.id INTO its_id FROM dbjobs_runs r FORCE INDEX (runs_queued) WHERE r.queued_in = of_queue ORDER BY r.urgency, r.ready_at, r.id LIMIT 1 FOR UPDATE SKIP LOCKED;
  ELSE
    SELECT r.id INTO its_id FROM dbjobs_runs r FORCE INDEX (runs_queued) WHERE r.queued_in = of_queue AND (SELECT j.owner FROM dbjobs_jobs j WHERE j.id = r.job_id) = me
    ORDER BY r.urgency, r.ready_at, r.id LIMIT 1 FOR UPDATE SKIP LOCKED;
  END IF;
  UPDATE dbjobs_runs r SET r.state = 'running', r.fence = r.fence + 1, r.attempt = r.attempt + 1, r.attempts = r.attempts + 1,
    r.holder = COALESCE(taker, CONCAT(SUBSTRING_INDEX(USER(), '@', 1), '/', CONNECTION_ID())), r.started_at = COALESCE(r.started_at, now), r.lease_until = now + INTERVAL lease SECOND
  WHERE r.id = its_id;
  SELECT r.id, r.fence, r.job_id, r.step, r.scheduled_for, r.interval_start, r.interval_end, r.args FROM dbjobs_runs r WHERE r.id = its_id;
  CALL dbjobs_done(mine);
END
;
