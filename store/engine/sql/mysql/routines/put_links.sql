-- A link that goes leaves no row that could differ from what is planned: the job's row has to say so, which is touched.
CREATE PROCEDURE dbjobs_put_links(IN subject text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN its_id bigint, IN list longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, INOUT touched boolean)
MODIFIES SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: writes which schedules a job uses'
BEGIN
  DECLARE t text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE one bigint;
  DECLARE i int DEFAULT 0;
  DECLARE want longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT '';
  IF COALESCE(JSON_TYPE(list), 'NULL') = 'NULL' THEN
    SET list = '[]';
  ELSEIF JSON_TYPE(list) <> 'ARRAY' THEN
    SET list = JSON_ARRAY(JSON_EXTRACT(list, '$'));
  END IF;
  WHILE i < JSON_LENGTH(list) DO
    CALL dbjobs_option_text(subject, 'schedules', JSON_EXTRACT(list, CONCAT('$[', i, ']')), t);
    CALL dbjobs_find_schedule(t, one);
    SET want = CONCAT_WS(',', NULLIF(want, ''), one);
    SET i = i + 1;
  END WHILE;
  DELETE FROM dbjobs_job_schedules WHERE job_id = its_id AND FIND_IN_SET(schedule_id, want) = 0
    AND schedule_id <> COALESCE((SELECT s.id FROM dbjobs_schedules s WHERE s.job_id = its_id), 0);
  SET touched = touched OR ROW_COUNT() > 0;
  INSERT INTO dbjobs_job_schedules (job_id, schedule_id)
  SELECT its_id, s.id FROM dbjobs_schedules s WHERE s.name IS NOT NULL AND FIND_IN_SET(s.id, want) > 0
    AND NOT EXISTS (SELECT 1 FROM dbjobs_job_schedules l WHERE l.job_id = its_id AND l.schedule_id = s.id);
END
;
