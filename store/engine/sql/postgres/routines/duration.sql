-- The shortest text of a length of time, as the program writes it.
CREATE FUNCTION dbjobs.duration(ms bigint) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE
    WHEN ms = 0 THEN '0s'
    WHEN ms % 86400000 = 0 THEN ms / 86400000 || 'd'
    WHEN ms < 1000 THEN ms || 'ms'
    WHEN ms % 3600000 = 0 THEN ms / 3600000 || 'h'
    ELSE CASE WHEN ms >= 3600000 THEN ms / 3600000 || 'h' ELSE '' END
      || CASE WHEN ms >= 60000 THEN ms / 60000 % 60 || 'm' ELSE '' END
      || CASE WHEN ms % 60000 = 0 THEN '' ELSE ms / 1000 % 60 || rtrim(rtrim('.' || lpad((ms % 1000)::text, 3, '0'), '0'), '.') || 's' END
    END
$$
;

COMMENT ON FUNCTION dbjobs.duration(bigint) IS 'for the other routines: writes a length of time'
;
