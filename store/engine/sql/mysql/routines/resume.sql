-- See Store.Resume (store/pause.go).
CREATE PROCEDURE dbjobs_resume(IN subject text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN scope text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN missed boolean, IN reason text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER COMMENT 'ends a pause; with missed, what fell due meanwhile counts as if there had been none, except before an edit of the times of the job'
BEGIN
  DECLARE mine boolean;
  DECLARE subject_id bigint;
  DECLARE named, kind, logged text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE now datetime(6) DEFAULT UTC_TIMESTAMP(6);
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    CALL dbjobs_undo(mine);
    RESIGNAL;
  END;
  CALL dbjobs_begin(mine);
  SET scope = COALESCE(scope, 'job'), missed = COALESCE(missed, false);
  IF missed NOT IN (0, 1) THEN
    CALL dbjobs_refuse('JB003', 'resume: missed: want true or false');
  END IF;
  CALL dbjobs_pause_subject(scope, subject, subject_id, named, kind, logged);
  CALL dbjobs_still_there(mine, scope, subject, subject_id);
  UPDATE dbjobs_pauses p SET p.resumed_at = now, p.resumed_by = LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), p.missed = missed
  WHERE p.scope = scope AND (p.subject_id = subject_id OR subject_id IS NULL) AND (named IS NULL OR p.subject = named)
    AND p.resumed_at IS NULL AND (p.until_at IS NULL OR p.until_at > now);
  IF ROW_COUNT() = 0 THEN
    CALL dbjobs_refuse('JB004', CONCAT(LEFT(logged, 50), ': not paused; the table dbjobs_pauses has the pauses'));
  END IF;
  CALL dbjobs_log_change(kind, subject_id, logged, 'resume', reason, NULL, IF(missed, '{"missed": true}', JSON_OBJECT()));
  CALL dbjobs_done(mine);
END
;
