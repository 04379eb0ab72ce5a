-- In the order in which the program writes it.
CREATE PROCEDURE dbjobs_put_job(IN subject text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN its_id bigint, IN options longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: writes what options give of a job'
BEGIN
  DECLARE c, v longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE its_owner, a_zone, path, was_start, was_zone text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE was_before datetime(6);
  DECLARE touched boolean DEFAULT false;
  DECLARE i int DEFAULT 0;
  CALL dbjobs_check_options(subject, options, JSON_MERGE_PRESERVE('["rule", "zone", "schedule", "schedules", "after", "steps", "sql", "args", "atomic", "fail_if", "target"]', JSON_ARRAY(
    SUBSTRING_INDEX('@key', '.', 1)
  )));
  SELECT j.owner, j.start_rule, j.start_zone, j.not_before INTO its_owner, was_start, was_zone, was_before FROM dbjobs_jobs j WHERE j.id = its_id;
  CALL dbjobs_job_columns(its_id, c);
  IF JSON_CONTAINS_PATH(options, 'one', '$.start') THEN
    IF JSON_EXTRACT(options, '$.start_zone') IS NULL THEN -- the one that it has, or the zone of the rule; without a start, none
      IF JSON_TYPE(JSON_EXTRACT(options, '$.start')) <> 'NULL' AND JSON_UNQUOTE(JSON_EXTRACT(options, '$.start')) <> '' THEN
        SET v = JSON_MERGE_PATCH('{}', options); -- without the keys that are null
        SET a_zone = COALESCE(NULLIF(JSON_UNQUOTE(JSON_EXTRACT(c, '$.start_zone')), ''), JSON_UNQUOTE(JSON_EXTRACT(v, '$.rule.zone')), JSON_UNQUOTE(JSON_EXTRACT(v, '$.zone')), (SELECT s.zone FROM dbjobs_schedules s WHERE s.job_id = its_id), 'UTC');
      END IF;
      SET options = JSON_SET(options, '$.start_zone', a_zone);
    END IF;
  END IF;
  CALL dbjobs_policy_columns(subject, its_owner, options, c);
  IF JSON_UNQUOTE(JSON_EXTRACT(c, '$.start_rule')) <> '' THEN
    IF COALESCE(JSON_TYPE(JSON_EXTRACT(options, '$.not_before')), 'NULL') <> 'NULL' THEN
      CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 50), ': start: cannot be combined with not_before; remove one of them'));
    END IF;
    -- A decision finds it anew, if the start has changed or, before it has come, the zone.
    IF JSON_UNQUOTE(JSON_EXTRACT(c, '$.start_rule')) = was_start AND was_before IS NOT NULL AND (was_before <= UTC_TIMESTAMP(6)
      OR COALESCE(NULLIF(JSON_UNQUOTE(JSON_EXTRACT(c, '$.start_zone')), ''), 'UTC') = COALESCE(NULLIF(was_zone, ''), 'UTC')) THEN
      SET c = JSON_SET(c, '$.not_before', CAST(was_before AS char));
    ELSE
      SET c = JSON_REMOVE(c, '$.not_before');
    END IF;
  ELSEIF was_start <> '' AND JSON_EXTRACT(options, '$.not_before') IS NULL THEN
    SET c = JSON_REMOVE(c, '$.not_before');
  END IF;
  UPDATE dbjobs_jobs t SET t.changed_at = UTC_TIMESTAMP(6),
    t.@column = JSON_UNQUOTE(JSON_EXTRACT(c, '$.@column'))
  WHERE t.id = its_id;
  IF JSON_CONTAINS_PATH(options, 'one', '$.sql', '$.args', '$.atomic', '$.fail_if', '$.target') THEN -- what a step that is SQL already has, stays
    SET v = JSON_OBJECT();
    IF EXISTS (SELECT 1 FROM dbjobs_steps s WHERE s.job_id = its_id) THEN
      CALL dbjobs_step_document(its_id, (SELECT MIN(s.position) FROM dbjobs_steps s WHERE s.job_id = its_id), v);
    END IF;
    IF JSON_UNQUOTE(JSON_EXTRACT(v, '$.executor')) = 'sql' THEN
      SET v = JSON_MERGE_PATCH(JSON_REMOVE(v, '$.executor', '$.spec'), JSON_EXTRACT(v, '$.spec'));
    ELSEIF NOT JSON_CONTAINS_PATH(options, 'one', '$.sql') THEN
      CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 50), ': args, atomic, fail_if, target belong to sql; give sql, too'));
    END IF;
    IF JSON_EXTRACT(options, '$.steps') IS NOT NULL OR (SELECT COUNT(*) FROM dbjobs_steps s WHERE s.job_id = its_id) > 1 THEN
      CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 50), ': sql: there are steps; change one with dbjobs_alter_step'));
    END IF;
    SET v = JSON_REMOVE(v, '$.executor', '$.spec');
    WHILE i < 5 DO
      SET i = i + 1, path = CONCAT('$.', ELT(i, 'sql', 'args', 'atomic', 'fail_if', 'target'));
      IF JSON_CONTAINS_PATH(options, 'one', path) THEN
        SET v = JSON_SET(v, path, JSON_EXTRACT(options, path));
      END IF;
    END WHILE;
    SET options = JSON_SET(options, '$.steps', JSON_ARRAY(JSON_EXTRACT(v, '$')));
  END IF;
  IF JSON_EXTRACT(options, '$.steps') IS NOT NULL THEN
    CALL dbjobs_put_steps(subject, its_id, JSON_EXTRACT(options, '$.steps'));
  END IF;
  IF JSON_EXTRACT(options, '$.after') IS NOT NULL THEN
    CALL dbjobs_put_after(subject, its_id, its_owner, JSON_EXTRACT(options, '$.after'));
  END IF;
  IF JSON_CONTAINS_PATH(options, 'one', '$.schedule', '$.schedules') THEN
    CALL dbjobs_put_links(subject, its_id, COALESCE(JSON_EXTRACT(options, '$.schedules'), JSON_EXTRACT(options, '$.schedule')), touched);
  END IF;
  IF JSON_CONTAINS_PATH(options, 'one', '$.rule', '$.zone') THEN
    CALL dbjobs_put_rule(subject, its_id, options, touched);
  END IF;
  IF touched THEN
    UPDATE dbjobs_jobs t SET t.planned = CONCAT(t.planned, '.') WHERE t.id = its_id;
  END IF;
END
;
