-- See Store.RenameJob (store/rename.go): jobs that name it as a hook are changed with it.
CREATE PROCEDURE dbjobs_rename_job(IN job text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN name text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN reason text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER COMMENT 'gives a job another name; its history and its runs stay'
BEGIN
  DECLARE mine boolean;
  DECLARE its_id bigint;
  DECLARE named text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE whose, old, hooked, is_now text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE of_job bigint;
  DECLARE was, became longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE at_end boolean DEFAULT false;
  DECLARE followers CURSOR FOR SELECT j.id, CONCAT_WS('/', NULLIF(j.owner, ''), j.name) FROM dbjobs_jobs j FORCE INDEX (jobs_hooks) WHERE j.has_hooks = 1
    AND (j.owner = whose AND old IN (j.on_failed, j.on_recovered, j.on_missed, j.on_late, j.on_lost, j.on_parked, j.on_paused) OR named IN (j.on_failed, j.on_recovered, j.on_missed, j.on_late, j.on_lost, j.on_parked, j.on_paused)) ORDER BY j.id FOR UPDATE;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET at_end = true;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    CALL dbjobs_undo(mine);
    RESIGNAL;
  END;
  CALL dbjobs_begin(mine);
  CALL dbjobs_lock_job(job, its_id, named);
  SELECT j.owner, j.name INTO whose, old FROM dbjobs_jobs j WHERE j.id = its_id FOR UPDATE;
  IF name = old THEN
    CALL dbjobs_refuse('JB004', CONCAT('job ', LEFT(named, 60), ': is this name already; give another'));
  END IF;
  CALL dbjobs_check_name(CONCAT('job ', named), 'name', name);
  IF EXISTS (SELECT 1 FROM dbjobs_jobs j WHERE j.live_name = name AND j.owner = whose) THEN
    CALL dbjobs_refuse('JB002', CONCAT('job ', LEFT(name, 60), ': exists already; give another name'));
  END IF;
  CALL dbjobs_job_document(its_id, was);
  SET is_now = CONCAT_WS('/', NULLIF(whose, ''), name);
  OPEN followers;
  UPDATE dbjobs_jobs j SET j.name = name WHERE j.id = its_id;
  CALL dbjobs_job_document(its_id, became);
  CALL dbjobs_log_change('job', its_id, is_now, 'rename', reason, was, became);
  SET at_end = false;
  FETCH followers INTO of_job, hooked;
  WHILE NOT at_end DO
    CALL dbjobs_job_document(of_job, was);
    UPDATE dbjobs_jobs j SET j.changed_at = UTC_TIMESTAMP(6),
      j.on_failed = CASE WHEN j.on_failed = named OR j.on_failed = old AND j.owner = whose THEN IF(j.owner = whose AND name <> 'none', name, is_now) ELSE j.on_failed END,
      j.on_recovered = CASE WHEN j.on_recovered = named OR j.on_recovered = old AND j.owner = whose THEN IF(j.owner = whose AND name <> 'none', name, is_now) ELSE j.on_recovered END,
      j.on_missed = CASE WHEN j.on_missed = named OR j.on_missed = old AND j.owner = whose THEN IF(j.owner = whose AND name <> 'none', name, is_now) ELSE j.on_missed END,
      j.on_late = CASE WHEN j.on_late = named OR j.on_late = old AND j.owner = whose THEN IF(j.owner = whose AND name <> 'none', name, is_now) ELSE j.on_late END,
      j.on_lost = CASE WHEN j.on_lost = named OR j.on_lost = old AND j.owner = whose THEN IF(j.owner = whose AND name <> 'none', name, is_now) ELSE j.on_lost END,
      j.on_parked = CASE WHEN j.on_parked = named OR j.on_parked = old AND j.owner = whose THEN IF(j.owner = whose AND name <> 'none', name, is_now) ELSE j.on_parked END,
      j.on_paused = CASE WHEN j.on_paused = named OR j.on_paused = old AND j.owner = whose THEN IF(j.owner = whose AND name <> 'none', name, is_now) ELSE j.on_paused END WHERE j.id = of_job;
    CALL dbjobs_job_document(of_job, became);
    CALL dbjobs_log_change('job', of_job, IF(of_job = its_id, is_now, hooked), 'change', reason, was, became);
    FETCH followers INTO of_job, hooked;
  END WHILE;
  CLOSE followers;
  CALL dbjobs_done(mine);
END
;
