-- The end of a step of a run that its owner executes: see Store.EndStepIn (store/step_end.go). It is the definer's, so that the
-- owner needs rights on nothing but this. It tells 0 where the run is not his, or was delivered again.
CREATE PROCEDURE dbjobs_end_own(its_run varchar(36) CHARACTER SET ascii, its_fence integer, its_number integer, final varchar(190) CHARACTER SET utf8mb4, its_step integer, its_step_name varchar(190) CHARACTER SET utf8mb4,
  its_holder varchar(190) CHARACTER SET utf8mb4, lease_ms bigint, waited_ms bigint, its_rows bigint, its_error longtext CHARACTER SET utf8mb4, run_error longtext CHARACTER SET utf8mb4,
  its_output longtext CHARACTER SET utf8mb4, its_result longtext CHARACTER SET utf8mb4, instant datetime(6))
MODIFIES SQL DATA SQL SECURITY DEFINER COMMENT 'ends an atomic step of the login: for the program'
BEGIN
  DECLARE ended integer DEFAULT 0;
  SET instant = COALESCE(instant, UTC_TIMESTAMP(6));
  IF final = 'succeeded' THEN -- the end of the run follows, from the tick
    UPDATE dbjobs_attempts SET state = 'succeeded', finished_at = instant,
      started_at = CASE WHEN waited_ms > 0 THEN LEAST(instant, DATE_ADD(started_at, INTERVAL 1000 * waited_ms MICROSECOND)) ELSE started_at END,
      rows_affected = its_rows, output = its_output, result = its_result
    WHERE run_id = its_run AND number = its_number AND fence = its_fence AND state = 'running'
      AND (SELECT r.id FROM dbjobs_runs r WHERE r.id = its_run AND r.fence = its_fence AND r.holder = its_holder AND r.state = 'running' AND r.attempts = its_number
        AND (SELECT j.owner FROM dbjobs_jobs j WHERE j.id = r.job_id) = CONVERT(LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))) USING utf8mb4) FOR UPDATE) IS NOT NULL;
    SET ended = ROW_COUNT();
  ELSE
    UPDATE dbjobs_runs SET finished_at = CASE WHEN final IS NULL THEN finished_at ELSE instant END,
      lease_until = CASE WHEN final IS NULL THEN DATE_ADD(instant, INTERVAL 1000 * lease_ms MICROSECOND) END, error = CASE WHEN final IS NULL THEN error ELSE run_error END,
      step = CASE WHEN final IS NULL THEN its_step ELSE step END, attempt = CASE WHEN final IS NULL THEN 1 ELSE attempt END,
      attempts = attempts + CASE WHEN final IS NULL THEN 1 ELSE 0 END,
      losses = CASE WHEN final IS NULL THEN 0 ELSE losses END, state = COALESCE(final, state)
    WHERE id = its_run AND fence = its_fence AND holder = its_holder AND state = 'running' AND attempts = its_number AND COALESCE(final, 'failed') = 'failed'
      AND (SELECT j.owner FROM dbjobs_jobs j WHERE j.id = job_id) = CONVERT(LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))) USING utf8mb4);
    SET ended = ROW_COUNT();
    IF ended = 1 THEN
      UPDATE dbjobs_attempts SET state = 'succeeded', finished_at = instant,
        started_at = CASE WHEN waited_ms > 0 THEN LEAST(instant, DATE_ADD(started_at, INTERVAL 1000 * waited_ms MICROSECOND)) ELSE started_at END,
        rows_affected = its_rows, error = its_error, output = its_output, result = its_result
      WHERE run_id = its_run AND number = its_number AND fence = its_fence AND state = 'running';
      IF final IS NULL THEN
        INSERT INTO dbjobs_attempts (run_id, number, step, step_name, attempt, fence, holder, started_at)
        VALUES (its_run, its_number + 1, its_step, its_step_name, 1, its_fence, its_holder, instant);
      END IF;
    END IF;
  END IF;
  SELECT ended;
END
;
