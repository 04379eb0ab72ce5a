-- A length of time such as 90s, 1h30m, 7d or 2 minutes, in milliseconds. A unit M is none: it may mean months.
CREATE FUNCTION dbjobs.milliseconds(subject text, field text, length text) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  ms numeric := 0;
  part text[];
BEGIN
  IF length ~* '^([0-9]{1,5} ?d(ays?)?)?( ?([0-9]{1,12}([.][0-9]*)?|[.][0-9]+) ?(ms|milliseconds?|s|sec|secs|seconds?|m|min|mins|minutes?|h|hours?))*$' AND length !~ 'M([^A-Za-z]|$)' AND length <> '' THEN
    FOR part IN SELECT regexp_matches(length, '([0-9.]+) ?(ms|mil|s|m|h|d)[a-z]*', 'gi') LOOP
      ms := ms + part[1]::numeric * CASE lower(part[2]) WHEN 'ms' THEN 1 WHEN 'mil' THEN 1 WHEN 's' THEN 1000 WHEN 'm' THEN 60000 WHEN 'h' THEN 3600000 ELSE 86400000 END;
    END LOOP;
  ELSIF length IS DISTINCT FROM '0' THEN
    RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s: %s: %s is no length of time', subject, field, quote_literal(coalesce(length, ''))),
      HINT = 'Give a number with a unit, such as 90s, 1h30m or 30d.';
  END IF;
  IF ms > 0 AND ms < 1 OR ms > 36500 * 86400000::numeric THEN
    RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s: %s: %s is not between 1ms and 36500d', subject, field, quote_literal(length)),
      HINT = 'Give a number with a unit, such as 90s, 1h30m or 30d.';
  END IF;
  RETURN trunc(ms);
END
$$
;

COMMENT ON FUNCTION dbjobs.milliseconds(text, text, text) IS 'for the other routines: reads a length of time'
;
