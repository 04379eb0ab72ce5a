-- The version of a calendar's days: see Calendar.Version (store/calendar.go).
CREATE FUNCTION dbjobs.calendar_version(calendar text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce((SELECT encode(substr(sha256(convert_to(c.working_days || E'\x1F' || coalesce((SELECT string_agg(btrim(d.day, E' \t\r'), E'\n' ORDER BY d.n)
      FROM unnest(string_to_array(c.days, E'\n')) WITH ORDINALITY AS d(day, n) WHERE btrim(d.day, E' \t\r') <> ''), ''), 'UTF8')), 1, 8), 'hex')
    FROM dbjobs.calendars c WHERE c.name = calendar_version.calendar), '')
$$
;

COMMENT ON FUNCTION dbjobs.calendar_version(text) IS 'for the other routines: the version of the days of a calendar'
;
