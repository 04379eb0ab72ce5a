CREATE FUNCTION dbjobs.instant_text(at timestamptz) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT rtrim(rtrim(to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'), '0'), '.') || 'Z'
$$
;

COMMENT ON FUNCTION dbjobs.instant_text(timestamptz) IS 'for the other routines: writes an instant'
;
