-- What is at its default of nothing is left out.
CREATE PROCEDURE dbjobs_job_document(IN its_id bigint, OUT document longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
READS SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: a job as the change log has it'
BEGIN
  DECLARE list, c, v, one longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE t, kind, outer_key, inner_key, a_start text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE n bigint;
  DECLARE at datetime(6);
  DECLARE i int DEFAULT 0;
  DECLARE at_end boolean DEFAULT false;
  DECLARE shared CURSOR FOR SELECT s.name FROM dbjobs_job_schedules l JOIN dbjobs_schedules s ON s.id = l.schedule_id WHERE l.job_id = its_id AND s.name IS NOT NULL ORDER BY s.name LOCK IN SHARE MODE;
  DECLARE after_jobs CURSOR FOR SELECT (SELECT IF(o.id IS NULL, CONCAT('job ', a.after_job_id, ', whose row is gone'), IF(o.owner = j.owner, o.name, CONCAT_WS('/', NULLIF(o.owner, ''), o.name)))
      FROM dbjobs_jobs j LEFT JOIN dbjobs_jobs o ON o.id = a.after_job_id WHERE j.id = a.job_id), a.on_end -- without locks of other jobs
    FROM dbjobs_job_after a WHERE a.job_id = its_id ORDER BY 1 LOCK IN SHARE MODE;
  DECLARE steps CURSOR FOR SELECT s.position FROM dbjobs_steps s WHERE s.job_id = its_id ORDER BY s.position LOCK IN SHARE MODE;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET at_end = true;
  CALL dbjobs_policies(list);
  CALL dbjobs_job_columns(its_id, c);
  SET document = (SELECT JSON_MERGE_PATCH('{}', JSON_OBJECT('owner', j.owner, 'name', j.name, 'manifest', j.manifest,
    'start_zone', IF(j.start_rule <> '', COALESCE(NULLIF(j.start_zone, ''), 'UTC'), NULL))) FROM dbjobs_jobs j WHERE j.id = its_id);
  WHILE i < JSON_LENGTH(list) DO
    SET t = JSON_UNQUOTE(JSON_EXTRACT(c, CONCAT('$.', JSON_UNQUOTE(JSON_EXTRACT(list, CONCAT('$[', i, '][1]'))))));
    SET kind = JSON_UNQUOTE(JSON_EXTRACT(list, CONCAT('$[', i, '][2]')));
    SET v = NULL;
    CASE
    WHEN t IS NULL THEN BEGIN END;
    WHEN kind = 'off' THEN SET v = IF(t = '0', 'true', NULL);
    WHEN kind = 'flag' THEN SET v = IF(t = '1', 'true', NULL);
    WHEN kind = 'number' THEN SET v = NULLIF(t, '0');
    WHEN kind = 'percent' THEN SET v = t;
    WHEN kind = 'attempts' THEN SET v = JSON_QUOTE(IF(t = '0', 'until-next', t));
    WHEN kind IN ('again', 'length') THEN
      CALL dbjobs_duration(t, t);
      SET v = IF(kind = 'length' AND t = '0s', NULL, JSON_QUOTE(t));
    WHEN kind = 'instant' THEN
      CALL dbjobs_instant_text(t, t);
      SET v = JSON_QUOTE(t);
    WHEN kind = 'tags' THEN SET v = IF(JSON_LENGTH(t) = 0, NULL, t);
    ELSE SET v = IF(t = '', NULL, JSON_QUOTE(t));
    END CASE;
    IF v IS NOT NULL THEN
      SET outer_key = JSON_UNQUOTE(JSON_EXTRACT(list, CONCAT('$[', i, '][0]')));
      SET document = JSON_MERGE_PATCH(document, IF(LOCATE('.', outer_key) = 0, CONCAT('{"', outer_key, '": ', v, '}'),
        CONCAT('{"', SUBSTRING_INDEX(outer_key, '.', 1), '": {"', SUBSTRING_INDEX(outer_key, '.', -1), '": ', v, '}}')));
    END IF;
    SET i = i + 1;
  END WHILE;
  SET at_end = false, one = '[]';
  OPEN shared;
  FETCH shared INTO t;
  WHILE NOT at_end DO
    SET one = JSON_ARRAY_APPEND(one, '$', t);
    FETCH shared INTO t;
  END WHILE;
  CLOSE shared;
  IF JSON_LENGTH(one) > 0 THEN
    SET document = JSON_SET(document, '$.schedules', JSON_EXTRACT(one, '$'));
  END IF;
  SET n = (SELECT s.id FROM dbjobs_schedules s WHERE s.job_id = its_id);
  IF n IS NOT NULL THEN
    CALL dbjobs_schedule_document(n, v);
    SET document = JSON_SET(document, '$.own', JSON_EXTRACT(JSON_SET(v, '$.jobs', 0), '$'));
  END IF;
  SET at_end = false, one = '[]';
  OPEN after_jobs;
  FETCH after_jobs INTO t, kind;
  WHILE NOT at_end DO
    SET one = JSON_ARRAY_APPEND(one, '$', JSON_OBJECT('job', t, 'on', kind));
    FETCH after_jobs INTO t, kind;
  END WHILE;
  CLOSE after_jobs;
  IF JSON_LENGTH(one) > 0 THEN
    SET document = JSON_SET(document, '$.after', JSON_EXTRACT(one, '$'));
  END IF;
  SET at_end = false, one = '[]';
  OPEN steps;
  FETCH steps INTO i;
  WHILE NOT at_end DO
    CALL dbjobs_step_document(its_id, i, v);
    SET one = JSON_ARRAY_APPEND(one, '$', JSON_EXTRACT(v, '$'));
    FETCH steps INTO i;
  END WHILE;
  CLOSE steps;
  SET document = JSON_SET(document, '$.steps', IF(JSON_LENGTH(one) > 0, JSON_EXTRACT(one, '$'), NULL));
END
;
