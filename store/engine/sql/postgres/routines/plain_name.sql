-- The name of a job without its owner.
CREATE FUNCTION dbjobs.plain_name(name text) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN strpos(name, '/') > 0 THEN substr(name, strpos(name, '/') + 1) ELSE name END
$$
;

COMMENT ON FUNCTION dbjobs.plain_name(text) IS 'for the other routines: the name of a job without its owner'
;
