-- Whether the run is still held, and has to stop: cancel says that somebody wants its end.
CREATE FUNCTION dbjobs.extend(run uuid, fence integer, lease interval DEFAULT '10 minutes', OUT held boolean, OUT cancel boolean)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  lease := coalesce(lease, '10 minutes');
  IF lease <= interval '0' OR lease > interval '1000 years' THEN
    RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('extend: lease: %s is no time to work', lease), HINT = 'Give an interval, such as ''10 minutes''.';
  END IF;
  UPDATE dbjobs.runs AS r SET lease_until = statement_timestamp() + lease WHERE r.id = run AND r.fence = extend.fence AND r.state = 'running'
  RETURNING r.cancel_at IS NOT NULL INTO cancel;
  held := FOUND;
END
$$
;

COMMENT ON FUNCTION dbjobs.extend(uuid, integer, interval) IS 'extends the lease of a run that is held; held false: somebody else has it; cancel: stop'
;
