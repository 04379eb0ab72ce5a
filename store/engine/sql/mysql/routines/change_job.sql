-- rounded: the old text of a step had a number that its document has not.
CREATE PROCEDURE dbjobs_change_job(IN its_id bigint, IN named text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN options longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN reason text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN rounded boolean)
MODIFIES SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: changes a locked job, unless it is as it should be'
BEGIN
  DECLARE was, became longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  CALL dbjobs_job_document(its_id, was);
  SAVEPOINT dbjobs_change;
  CALL dbjobs_put_job(CONCAT('job ', named), its_id, COALESCE(options, JSON_OBJECT()));
  CALL dbjobs_job_document(its_id, became);
  IF became = was AND NOT rounded THEN
    ROLLBACK TO SAVEPOINT dbjobs_change;
  ELSE
    CALL dbjobs_log_change('job', its_id, named, 'change', reason, was, became);
  END IF;
  RELEASE SAVEPOINT dbjobs_change;
END
;
