-- At READ COMMITTED, each statement sees what is there when it begins. A transaction that keeps its first snapshot may see a job or
-- schedule that has been removed since then, or has another name now: to lock such a row ends with 40001. A row that the caller may not
-- change is not locked. The name of a job is no key to the server, since a removed job may have it, too, and a lock of the key alone
-- would be granted.
CREATE FUNCTION dbjobs.still_there(kind text, its_id bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF current_setting('transaction_isolation') NOT IN ('repeatable read', 'serializable') THEN
    RETURN;
  END IF;
  IF kind = 'job' THEN
    PERFORM j.id FROM dbjobs.jobs j WHERE j.id = its_id FOR SHARE;
  ELSIF kind = 'schedule' THEN
    PERFORM s.id FROM dbjobs.schedules s WHERE s.id = its_id FOR KEY SHARE;
  END IF;
END
$$
;

COMMENT ON FUNCTION dbjobs.still_there(text, bigint) IS 'for the other routines: fails if a job or schedule has changed since the snapshot of the transaction'
;
