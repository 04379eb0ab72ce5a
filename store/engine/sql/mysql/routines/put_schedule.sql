-- options change what there is; null is the default. When a rule changes, its new times count from that moment. SQL cannot read a rule: a
-- pass plans by it, or parks the jobs with what is wrong.
CREATE PROCEDURE dbjobs_put_schedule(IN subject text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, INOUT its_id bigint, IN named text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN of_job bigint, IN options longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: writes a schedule, shared under a name or the own rule of a job'
BEGIN
  DECLARE is_rule, is_zone, is_nonexistent, is_ambiguous, is_calendar, is_holiday, is_description, version, k, t, usual, me text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE everything boolean;
  DECLARE i int DEFAULT 0;
  DECLARE now datetime(6) DEFAULT UTC_TIMESTAMP(6);
  DECLARE EXIT HANDLER FOR 1062 CALL dbjobs_refuse('JB002', CONCAT(LEFT(subject, 60), ': exists already; dbjobs_alter_schedule changes it'));
  CALL dbjobs_me(me, everything);
  CALL dbjobs_check_options(subject, options, '["rule", "zone", "nonexistent", "ambiguous", "calendar", "on_holiday", "description"]');
  SET is_rule = '', is_zone = 'UTC', is_nonexistent = 'forward', is_ambiguous = 'first', is_calendar = '', is_holiday = 'skip', is_description = '';
  IF its_id IS NOT NULL THEN
    SELECT s.rule, s.zone, s.nonexistent, s.ambiguous, s.calendar, s.on_holiday, s.description
    INTO is_rule, is_zone, is_nonexistent, is_ambiguous, is_calendar, is_holiday, is_description FROM dbjobs_schedules s WHERE s.id = its_id FOR UPDATE;
  END IF;
  WHILE i < JSON_LENGTH(options) DO
    SET k = JSON_UNQUOTE(JSON_EXTRACT(JSON_KEYS(options), CONCAT('$[', i, ']')));
    CALL dbjobs_option_text(subject, k, JSON_EXTRACT(options, CONCAT('$.', k)), t);
    SET t = NULLIF(TRIM(t), '');
    IF FIND_IN_SET(t, CASE k WHEN 'nonexistent' THEN 'forward,skip' WHEN 'ambiguous' THEN 'first,last,both' WHEN 'on_holiday' THEN 'skip,next,previous' END) = 0 THEN
      CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 40), ': ', k, ': "', LEFT(t, 20), '" is no such word; see the check of dbjobs_schedules'));
    END IF;
    CASE k
    WHEN 'rule' THEN SET is_rule = COALESCE(t, '');
    WHEN 'zone' THEN SET is_zone = COALESCE(t, 'UTC');
    WHEN 'nonexistent' THEN SET is_nonexistent = COALESCE(t, 'forward');
    WHEN 'ambiguous' THEN SET is_ambiguous = COALESCE(t, 'first');
    WHEN 'calendar' THEN SET is_calendar = COALESCE(t, '');
    WHEN 'on_holiday' THEN SET is_holiday = COALESCE(t, 'skip'), usual = t;
    ELSE SET is_description = COALESCE(t, '');
    END CASE;
    SET i = i + 1;
  END WHILE;
  IF is_rule = '' THEN
    CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 50), ': rule: is missing; give one such as "every 5m" or "0 6 * * MON-FRI"'));
  ELSEIF is_calendar = '' AND usual IS NOT NULL THEN
    CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 50), ': on_holiday: needs a calendar; name one as calendar'));
  ELSEIF is_calendar <> '' AND NOT EXISTS (SELECT 1 FROM dbjobs_calendars c WHERE c.name = is_calendar AND (everything OR c.owner = me)) THEN
    CALL dbjobs_refuse('JB001', CONCAT(LEFT(subject, 50), ': there is no calendar ', LEFT(is_calendar, 30), '; see dbjobs_calendars'));
  ELSEIF LENGTH(is_description) > 1000 THEN
    CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 50), ': description: has more than 1000 bytes; give a shorter one'));
  END IF;
  IF is_calendar = '' THEN
    SET is_holiday = 'skip';
  END IF;
  CALL dbjobs_calendar_version(is_calendar, version);
  IF its_id IS NULL THEN
    DO LAST_INSERT_ID(0);
    INSERT INTO dbjobs_schedules (name, job_id, owner, rule, zone, nonexistent, ambiguous, calendar, on_holiday, calendar_version, description, created_at, changed_at)
    VALUES (named, of_job, me, is_rule, is_zone, is_nonexistent, is_ambiguous, is_calendar, is_holiday, version, is_description, now, now);
    SET its_id = LAST_INSERT_ID();
    IF LAST_INSERT_ID() = 0 THEN
      CALL dbjobs_refuse('JB004', 'insert_id is set in this session, and the server numbers the rows here; call from another session');
    END IF;
  ELSE
    UPDATE dbjobs_schedules s SET s.changed_at = IF(s.rule = is_rule AND s.zone = is_zone AND s.nonexistent = is_nonexistent AND s.ambiguous = is_ambiguous
        AND s.calendar = is_calendar AND s.on_holiday = is_holiday, s.changed_at, now),
      s.rule = is_rule, s.zone = is_zone, s.nonexistent = is_nonexistent, s.ambiguous = is_ambiguous, s.calendar = is_calendar, s.on_holiday = is_holiday,
      s.calendar_version = version, s.description = is_description WHERE s.id = its_id;
  END IF;
END
;
