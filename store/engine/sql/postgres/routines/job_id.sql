-- The job of a name, or of owner/name: of several with one name, that of the session's login.
CREATE FUNCTION dbjobs.job_id(job text) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  whose text;
  found bigint[];
  named text;
BEGIN
  IF strpos(job, '/') > 0 THEN
    whose := split_part(job, '/', 1);
  END IF;
  SELECT array_agg(j.id), string_agg(dbjobs.full_name(j.owner, j.name), ', ' ORDER BY j.owner) INTO found, named FROM dbjobs.jobs j
  WHERE j.removed_at IS NULL AND j.name = dbjobs.plain_name(job_id.job) AND (whose IS NULL OR j.owner = whose);
  IF cardinality(found) > 1 AND whose IS NULL THEN
    SELECT coalesce(array_agg(j.id), found) INTO found FROM dbjobs.jobs j
    WHERE j.removed_at IS NULL AND j.name = job_id.job AND j.owner = session_user;
  END IF;
  CASE coalesce(cardinality(found), 0)
  WHEN 1 THEN
    RETURN found[1];
  WHEN 0 THEN
    RAISE EXCEPTION USING ERRCODE = 'JB001', MESSAGE = format('job %s: not found', coalesce(quote_ident(job), 'NULL')),
      HINT = 'Give the name of a job, or owner/name: SELECT owner, name FROM dbjobs.jobs WHERE removed_at IS NULL.';
  ELSE
    RAISE EXCEPTION USING ERRCODE = 'JB005', MESSAGE = format('job %s: several owners have a job with this name: %s', quote_ident(job), named),
      HINT = 'Give owner/name.';
  END CASE;
END
$$
;

COMMENT ON FUNCTION dbjobs.job_id(text) IS 'the id of a job, by its name or by owner/name'
;
