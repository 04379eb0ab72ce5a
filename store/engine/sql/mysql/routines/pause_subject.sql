CREATE PROCEDURE dbjobs_pause_subject(IN scope text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN subject text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, OUT subject_id bigint, OUT named text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, OUT kind text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, OUT logged text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
READS SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: what a pause is about'
BEGIN
  DECLARE me text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE everything boolean;
  CALL dbjobs_me(me, everything);
  SET subject_id = NULL, named = NULL, kind = 'pause';
  IF FIND_IN_SET(scope, 'job,schedule,tag,owner,all') = 0 THEN
    CALL dbjobs_refuse('JB003', 'pause: scope: is not one of job, schedule, tag, owner, all; NULL is job');
  END IF;
  CASE scope
  WHEN 'job' THEN
    CALL dbjobs_find_job(subject, subject_id, logged);
    SET kind = scope;
  WHEN 'schedule' THEN
    CALL dbjobs_find_schedule(subject, subject_id);
    SET kind = scope, logged = subject;
  WHEN 'tag' THEN
    SET named = subject, logged = CONCAT('tag ', subject);
  WHEN 'owner' THEN
    SET named = subject, logged = CONCAT('owner ', subject);
  ELSE
    SET logged = scope;
  END CASE;
  IF scope IN ('tag', 'owner') AND COALESCE(subject, '') = '' THEN
    CALL dbjobs_refuse('JB003', CONCAT('pause: ', scope, ': is missing; give its name as subject'));
  ELSEIF NOT everything AND (scope IN ('tag', 'all') OR scope = 'owner' AND subject <> me) THEN
    CALL dbjobs_refuse('JB004', CONCAT('pause: ', scope, ': concerns jobs of other logins; pause your own, or ask the administrator'));
  END IF;
END
;
