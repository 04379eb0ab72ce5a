CREATE PROCEDURE dbjobs_schedule_document(IN its_id bigint, OUT document longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
READS SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: a schedule as the change log has it'
BEGIN
  SET document = (SELECT JSON_MERGE_PATCH('{}', JSON_OBJECT('name', COALESCE(s.name, ''), 'rule', s.rule, 'zone', s.zone, 'nonexistent', s.nonexistent, 'ambiguous', s.ambiguous,
    'calendar', NULLIF(s.calendar, ''), 'on_holiday', IF(s.calendar <> '', s.on_holiday, NULL), 'description', NULLIF(s.description, ''), 'manifest', IF(s.name IS NULL, NULL, s.manifest)))
    FROM dbjobs_schedules s WHERE s.id = its_id);
END
;
