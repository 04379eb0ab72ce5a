-- The text of an option: NULL, unless it is given as a text.
CREATE FUNCTION dbjobs.option_text(subject text, field text, value jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF coalesce(jsonb_typeof(value), 'null') NOT IN ('string', 'null') THEN
    RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s: %s: %s is no text', subject, field, value), HINT = 'Give a text in quotes.';
  END IF;
  RETURN value #>> '{}';
END
$$
;

COMMENT ON FUNCTION dbjobs.option_text(text, text, jsonb) IS 'for the other routines: reads a text of options'
;
