CREATE FUNCTION dbjobs.option_number(subject text, field text, value jsonb) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF jsonb_typeof(value) = 'number' AND value::text ~ '^-?[0-9]{1,18}$' THEN
    RETURN value::text::bigint;
  END IF;
  RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s: %s: %s is no whole number', subject, field, value), HINT = 'Give a number without quotes.';
END
$$
;

COMMENT ON FUNCTION dbjobs.option_number(text, text, jsonb) IS 'for the other routines: reads a number of options'
;
