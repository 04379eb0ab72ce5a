CREATE FUNCTION dbjobs.open_pause(scope text, subject_id bigint, subject text) RETURNS timestamptz
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT min(p.since) FROM dbjobs.pauses p WHERE p.scope = open_pause.scope AND (p.subject_id = open_pause.subject_id OR open_pause.subject_id IS NULL)
    AND (open_pause.subject IS NULL OR p.subject = open_pause.subject) AND p.resumed_at IS NULL AND p.ends_at > statement_timestamp()
$$
;

COMMENT ON FUNCTION dbjobs.open_pause(text, bigint, text) IS 'for the other routines: since when something is paused'
;
