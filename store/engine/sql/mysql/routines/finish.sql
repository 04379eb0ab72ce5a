-- The error is kept as far as the program keeps one (clip in store/step_end.go): a long one does not keep the run from its end.
CREATE PROCEDURE dbjobs_finish(IN run text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN of_fence int, IN end_state text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN error longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER COMMENT 'ends a run that is held: succeeded (NULL), failed or cancelled, with its error; finished 0: it is not held any more'
BEGIN
  DECLARE its_id char(36) CHARACTER SET ascii COLLATE ascii_bin DEFAULT LEFT(run, 36);
  DECLARE me text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE everything boolean;
  CALL dbjobs_end_killed();
  CALL dbjobs_me(me, everything);
  IF NOT everything THEN
    SELECT MAX(r.id) INTO its_id FROM dbjobs_runs r JOIN dbjobs_jobs j ON j.id = r.job_id WHERE r.id = its_id AND j.owner = me; -- NULL: it is not his
  END IF;
  SET end_state = COALESCE(end_state, 'succeeded');
  IF FIND_IN_SET(end_state, 'succeeded,failed,cancelled') = 0 THEN
    CALL dbjobs_refuse('JB003', 'finish: state: is not one of succeeded, failed, cancelled');
  END IF;
  UPDATE dbjobs_runs r SET r.state = end_state, r.error = IF(CHAR_LENGTH(error) > 4000, CONCAT(LEFT(error, 4000), ' ...'), error), r.finished_at = UTC_TIMESTAMP(6), r.lease_until = NULL
  WHERE r.id = its_id AND r.fence = of_fence AND r.state = 'running';
  SELECT ROW_COUNT() > 0 AS finished;
END
;
