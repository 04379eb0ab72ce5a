-- The policies of a job, for reading and writing them by their keys in a file of jobs. The program writes the list.
--
-- kind: text, name (a name), word (of the column's CHECK), number, percent, attempts, length (of time), again (the same, which
-- is written also where it is zero), flag, off (a flag of which the column has the opposite), tags, instant, hook.
CREATE FUNCTION dbjobs.policies() RETURNS TABLE (key text, col text, kind text, usual jsonb)
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  VALUES
    ('@key', '@column', '@kind', '@default'::jsonb)
$$
;

COMMENT ON FUNCTION dbjobs.policies() IS 'for the other routines: the keys of a job, and their columns'
;
