-- The columns of a schedule with the options: what it was, and what they change. NULL is the default.
CREATE FUNCTION dbjobs.schedule_columns(subject text, was jsonb, options jsonb) RETURNS jsonb
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  usual CONSTANT jsonb := '{"rule": "", "zone": "UTC", "nonexistent": "forward", "ambiguous": "first", "calendar": "", "on_holiday": "skip", "description": ""}';
  c jsonb;
  given record;
BEGIN
  options := coalesce(options, '{}');
  PERFORM dbjobs.check_options(subject, options, ARRAY['rule', 'zone', 'nonexistent', 'ambiguous', 'calendar', 'on_holiday', 'description']);
  c := usual || coalesce(was, '{}');
  FOR given IN SELECT * FROM jsonb_each(options) LOOP
    c := c || jsonb_build_object(given.key, coalesce(nullif(btrim(dbjobs.option_text(subject, given.key, given.value)), ''), usual ->> given.key));
  END LOOP;
  IF c ->> 'rule' = '' THEN
    RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s: rule: is missing', subject), HINT = 'Give a rule, such as ''every 5m'' or ''0 6 * * MO-FR''.';
  ELSIF c ->> 'calendar' = '' AND options ->> 'on_holiday' IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s: on_holiday: needs a calendar', subject), HINT = 'Name one as calendar.';
  ELSIF c ->> 'calendar' <> '' AND NOT EXISTS (SELECT 1 FROM dbjobs.calendars x WHERE x.name = c ->> 'calendar') THEN
    RAISE EXCEPTION USING ERRCODE = 'JB001', MESSAGE = format('%s: there is no calendar %s', subject, quote_literal(c ->> 'calendar')), HINT = 'SELECT name FROM dbjobs.calendars shows them.';
  ELSIF octet_length(c ->> 'description') > 1000 THEN
    RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s: description: has %s bytes; at most 1000 are allowed', subject, octet_length(c ->> 'description')), HINT = 'Give a shorter one.';
  END IF;
  RETURN c || jsonb_build_object('calendar_version', dbjobs.calendar_version(c ->> 'calendar'))
    || CASE WHEN c ->> 'calendar' = '' THEN jsonb '{"on_holiday": "skip"}' ELSE jsonb '{}' END;
END
$$
;

COMMENT ON FUNCTION dbjobs.schedule_columns(text, jsonb, jsonb) IS 'for the other routines: reads what a schedule may have'
;
