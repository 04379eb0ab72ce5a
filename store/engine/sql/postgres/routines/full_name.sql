CREATE FUNCTION dbjobs.full_name(owner text, name text) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN owner = '' THEN name ELSE owner || '/' || name END
$$
;

COMMENT ON FUNCTION dbjobs.full_name(text, text) IS 'for the other routines: owner/name of a job'
;
