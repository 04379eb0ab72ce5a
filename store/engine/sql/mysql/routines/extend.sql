CREATE PROCEDURE dbjobs_extend(IN run text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN of_fence int, IN lease int)
MODIFIES SQL DATA SQL SECURITY DEFINER COMMENT 'extends the lease of a run that is held, in seconds (NULL: 600); held 0: somebody else has it; cancel 1: stop'
BEGIN
  DECLARE its_id char(36) CHARACTER SET ascii COLLATE ascii_bin DEFAULT LEFT(run, 36);
  DECLARE me text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE everything boolean;
  CALL dbjobs_end_killed();
  CALL dbjobs_me(me, everything);
  IF NOT everything THEN
    SELECT MAX(r.id) INTO its_id FROM dbjobs_runs r JOIN dbjobs_jobs j ON j.id = r.job_id WHERE r.id = its_id AND j.owner = me; -- NULL: it is not his
  END IF;
  SET lease = COALESCE(lease, 600);
  IF lease <= 0 THEN
    CALL dbjobs_refuse('JB003', 'extend: lease: want seconds, more than 0');
  END IF;
  UPDATE dbjobs_runs r SET r.lease_until = UTC_TIMESTAMP(6) + INTERVAL lease SECOND WHERE r.id = its_id AND r.fence = of_fence AND r.state = 'running';
  SELECT COUNT(*) > 0 AS held, COALESCE(MAX(r.cancel_at IS NOT NULL), 0) AS cancel FROM dbjobs_runs r WHERE r.id = its_id AND r.fence = of_fence AND r.state = 'running' FOR UPDATE; -- what is there now
END
;
