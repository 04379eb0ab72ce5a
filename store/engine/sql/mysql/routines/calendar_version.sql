-- See Calendar.Version (store/calendar.go).
CREATE PROCEDURE dbjobs_calendar_version(IN calendar text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, OUT version text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
READS SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: the version of the days of a calendar'
BEGIN
  SET version = COALESCE((SELECT LEFT(SHA2(CONCAT(c.working_days, CHAR(31 USING utf8mb4),
    REGEXP_REPLACE(REGEXP_REPLACE(REPLACE(c.days, CHAR(13 USING utf8mb4), ''), '[ \t]*\n[ \t\n]*', '\n'), '^[ \t\n]+|[ \t\n]+$', '')), 256), 16)
    FROM dbjobs_calendars c WHERE c.name = calendar), '');
END
;
