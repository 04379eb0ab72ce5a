-- See Store.Pause (store/pause.go).
CREATE PROCEDURE dbjobs_pause(IN subject text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN scope text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN until_at datetime(6), IN reason text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER COMMENT 'holds a job, or by scope a schedule, the jobs with a tag or of an owner, or all, until an instant (UTC) or until dbjobs_resume'
BEGIN
  DECLARE mine boolean;
  DECLARE subject_id, its_jobs, known bigint;
  DECLARE named, kind, logged, instant text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE paused datetime(6);
  DECLARE now datetime(6) DEFAULT UTC_TIMESTAMP(6);
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    CALL dbjobs_undo(mine);
    RESIGNAL;
  END;
  CALL dbjobs_begin(mine);
  SET scope = COALESCE(scope, 'job');
  CALL dbjobs_pause_subject(scope, subject, subject_id, named, kind, logged);
  CALL dbjobs_still_there(mine, scope, subject, subject_id);
  IF scope IN ('owner', 'tag') THEN
    -- Beside an IF or a SET, this would lock the jobs that it reads.
    SELECT COUNT(*) INTO its_jobs FROM dbjobs_jobs j WHERE j.removed_at IS NULL AND CASE scope WHEN 'owner' THEN j.owner = named AND LENGTH(j.owner) = LENGTH(named) -- to =, a blank at the end is nothing
      ELSE JSON_SEARCH(j.tags, 'one', REPLACE(REPLACE(REPLACE(named, '|', '||'), '%', '|%'), '_', '|_'), '|') IS NOT NULL END;
    IF its_jobs = 0 THEN
      CALL dbjobs_refuse('JB001', CONCAT(scope, ' ', LEFT(named, 40), ': no job has it; give one that a job has'));
    END IF;
  END IF;
  SELECT MAX(p.id) INTO known FROM dbjobs_pauses p WHERE p.scope = scope AND (p.subject_id = subject_id OR subject_id IS NULL) AND (named IS NULL OR p.subject = named)
    AND p.resumed_at IS NULL AND p.ends_at > now;
  SELECT MAX(p.since) INTO paused FROM dbjobs_pauses p WHERE p.id = known AND p.resumed_at IS NULL AND p.ends_at > now LOCK IN SHARE MODE; -- it may have been ended since
  IF paused IS NOT NULL THEN
    CALL dbjobs_instant_text(paused, instant);
    CALL dbjobs_refuse('JB002', CONCAT(LEFT(logged, 50), ': paused since ', instant, '; dbjobs_resume ends that'));
  END IF;
  IF until_at <= now OR until_at > '9999-12-31 23:59:59' THEN
    CALL dbjobs_refuse('JB003', CONCAT(LEFT(logged, 40), ': until: is in the past, or after the year 9999; give one to come in UTC, or NULL'));
  END IF;
  DO LAST_INSERT_ID(0);
  INSERT INTO dbjobs_pauses (scope, subject_id, subject, reason, paused_by, since, until_at)
  VALUES (scope, subject_id, named, COALESCE(reason, ''), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), now, until_at);
  IF LAST_INSERT_ID() = 0 THEN
    CALL dbjobs_refuse('JB004', 'insert_id is set in this session, and the server numbers the rows here; call from another session');
  END IF;
  CALL dbjobs_instant_text(until_at, instant);
  CALL dbjobs_log_change(kind, subject_id, logged, 'pause', reason, NULL, IF(until_at IS NULL, JSON_OBJECT(), JSON_OBJECT('until', instant)));
  CALL dbjobs_done(mine);
END
;
