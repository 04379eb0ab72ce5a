-- Whether a run of the login's own job is delivered with this fence: see Store.HoldsOwn (store/end_own.go). With a binary log, a
-- server lets a superuser alone make functions; hence a procedure.
CREATE PROCEDURE dbjobs_holds_own(its_run varchar(36) CHARACTER SET ascii, its_fence integer)
READS SQL DATA SQL SECURITY DEFINER COMMENT 'whether a run of the login is delivered so: for the program'
SELECT EXISTS (SELECT 1 FROM dbjobs_runs r JOIN dbjobs_jobs j ON j.id = r.job_id
  WHERE r.id = its_run AND r.fence = its_fence AND r.state = 'running' AND j.owner = CONVERT(LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))) USING utf8mb4))
;
