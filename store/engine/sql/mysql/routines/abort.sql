-- See Store.AbortJob (store/cancel.go). The plan's lock, and those of the jobs after which it runs, come before those of runs. They are
-- locked one by one: a statement that locks those of a list goes through all plans, and waits for those of other jobs.
CREATE PROCEDURE dbjobs_abort(IN job text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN run_only boolean, IN reason text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER COMMENT 'cancels the runs of a job that have not ended, and disables it; returns how many runs'
BEGIN
  DECLARE mine boolean;
  DECLARE its_id, one bigint;
  DECLARE named text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE run char(36) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE at_end boolean DEFAULT false;
  DECLARE asked int DEFAULT 0;
  DECLARE part, list longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT '';
  DECLARE deciding CURSOR FOR SELECT its_id AS id UNION SELECT a.after_job_id FROM dbjobs_job_after a WHERE a.job_id = its_id ORDER BY id;
  DECLARE runs CURSOR FOR SELECT r.id FROM dbjobs_runs r FORCE INDEX (runs_open) WHERE r.open_job_id = its_id AND r.state IN ('waiting', 'queued', 'running') ORDER BY r.id FOR UPDATE;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET at_end = true;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    CALL dbjobs_undo(mine);
    RESIGNAL;
  END;
  CALL dbjobs_begin(mine);
  CALL dbjobs_find_job(job, its_id, named);
  IF run_only THEN -- dbjobs_set_enabled looks, too
    CALL dbjobs_still_there(mine, 'job', job, its_id);
  END IF;
  OPEN deciding;
  FETCH deciding INTO one;
  WHILE NOT at_end DO
    INSERT IGNORE INTO dbjobs_plans (job_id, owner)
    SELECT j.id, j.owner FROM dbjobs_jobs j WHERE j.id = one AND NOT EXISTS (SELECT 1 FROM dbjobs_plans p WHERE p.job_id = one);
    SELECT MAX(p.job_id) INTO one FROM dbjobs_plans p WHERE p.job_id = one FOR UPDATE;
    FETCH deciding INTO one;
  END WHILE;
  CLOSE deciding;
  SET at_end = false;
  OPEN runs;
  FETCH runs INTO run;
  WHILE NOT at_end DO
    SET asked = asked + 1;
    IF run_only THEN
      SET part = CONCAT_WS(',', NULLIF(part, ''), JSON_QUOTE(run));
      IF LENGTH(part) > 40000 THEN -- each SET copies all of its value, so a long list grows by parts
        SET list = CONCAT_WS(',', NULLIF(list, ''), part), part = '';
      END IF;
    END IF;
    UPDATE dbjobs_runs u SET u.cancel_at = UTC_TIMESTAMP(6), u.cancel_by = LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), u.state = IF(u.state = 'queued', 'waiting', u.state)
    WHERE u.id = run AND u.state IN ('waiting', 'queued', 'running') AND u.cancel_at IS NULL;
    FETCH runs INTO run;
  END WHILE;
  CLOSE runs;
  IF run_only THEN
    SET list = CONCAT('[', CONCAT_WS(',', NULLIF(list, ''), NULLIF(part, '')), ']');
    CALL dbjobs_log_change('job', its_id, named, 'cancel', reason, NULL, IF(asked = 0, JSON_OBJECT(), JSON_OBJECT('runs', JSON_EXTRACT(list, '$'))));
  ELSE
    CALL dbjobs_set_enabled(its_id, named, false, 'abort', reason);
  END IF;
  CALL dbjobs_done(mine);
  SELECT asked AS runs;
END
;
