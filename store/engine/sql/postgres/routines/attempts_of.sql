-- A number of attempts: 1 to 1000, or until-next, which is 0.
CREATE FUNCTION dbjobs.attempts_of(subject text, field text, value jsonb, more integer) RETURNS integer
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF value #>> '{}' = 'until-next' THEN
    RETURN 0;
  ELSIF value #>> '{}' ~ '^[0-9]{1,4}$' AND (value #>> '{}')::integer + more BETWEEN 1 AND 1000 THEN
    RETURN (value #>> '{}')::integer + more;
  END IF;
  RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s: %s: %s is no number of attempts', subject, field, value), HINT = 'Give 1 to 1000, or until-next.';
END
$$
;

COMMENT ON FUNCTION dbjobs.attempts_of(text, text, jsonb, integer) IS 'for the other routines: reads a number of attempts'
;
