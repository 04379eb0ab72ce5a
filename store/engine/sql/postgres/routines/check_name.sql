-- Refuses a name that an engine would store as another, that could control a terminal, or that a command line takes for a flag.
CREATE FUNCTION dbjobs.check_name(subject text, field text, name text) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  problem text := CASE
    WHEN coalesce(name, '') = '' THEN 'is empty'
    WHEN octet_length(name) > 190 THEN format('has %s bytes; at most 190 are allowed', octet_length(name))
    WHEN name ~ '[\u0001-\u001f\u007f-\u009f]' THEN 'holds a control character'
    WHEN name ~ '^[ \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]|[ \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]$' THEN 'begins or ends with a space'
    WHEN left(name, 1) = '-' THEN 'begins with a hyphen, as a flag of a command does'
    WHEN strpos(name, '/') > 0 THEN 'holds a slash, which separates owner and name' END;
BEGIN
  IF problem IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s: %s: %s %s', subject, field, quote_literal(coalesce(name, '')), problem),
      HINT = 'Give another name.';
  END IF;
END
$$
;

COMMENT ON FUNCTION dbjobs.check_name(text, text, text) IS 'for the other routines: refuses what is no name'
;
