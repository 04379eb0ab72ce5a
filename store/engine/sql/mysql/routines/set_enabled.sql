CREATE PROCEDURE dbjobs_set_enabled(IN its_id bigint, IN named text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN is_enabled boolean, IN action text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN reason text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: enables or disables a job'
BEGIN
  DECLARE me text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE everything boolean;
  DECLARE was, became longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  CALL dbjobs_me(me, everything);
  SELECT MAX(j.id) INTO its_id FROM dbjobs_jobs j WHERE j.id = its_id AND j.removed_at IS NULL AND (everything OR j.owner = me) FOR UPDATE; -- before the locks of its steps
  IF its_id IS NULL THEN -- it was removed, or given away, just now or since the transaction of the caller began
    CALL dbjobs_refuse('JB001', CONCAT('job ', LEFT(named, 60), ': not found; give its name, or owner/name of dbjobs_jobs'));
  END IF;
  CALL dbjobs_job_document(its_id, was);
  UPDATE dbjobs_jobs j SET j.enabled = is_enabled, j.changed_at = UTC_TIMESTAMP(6) WHERE j.id = its_id;
  CALL dbjobs_job_document(its_id, became);
  CALL dbjobs_log_change('job', its_id, named, action, reason, was, became);
END
;
