-- See Store.RenameJob (store/rename.go): jobs that name it as a hook are changed with it.
CREATE FUNCTION dbjobs.rename_job(job text, name text, reason text DEFAULT '') RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  its_id bigint := dbjobs.lock_job(job);
  was jsonb := dbjobs.job_document(its_id);
  whose text := was ->> 'owner';
  old_full text := dbjobs.full_name(whose, was ->> 'name');
  hooked bigint[];
  of_job bigint;
  before jsonb;
  hooks jsonb;
BEGIN
  IF name = was ->> 'name' THEN
    RAISE EXCEPTION USING ERRCODE = 'JB004', MESSAGE = format('job %s: is this name already', old_full), HINT = 'Give another name.';
  END IF;
  PERFORM dbjobs.check_name('job ' || old_full, 'name', name);
  SELECT array_agg(j.id ORDER BY j.id) INTO hooked FROM dbjobs.jobs j WHERE j.removed_at IS NULL
    AND (j.owner = whose AND was ->> 'name' IN (j.on_failed, j.on_recovered, j.on_missed, j.on_late, j.on_lost, j.on_parked, j.on_paused)
      OR old_full IN (j.on_failed, j.on_recovered, j.on_missed, j.on_late, j.on_lost, j.on_parked, j.on_paused));
  PERFORM j.id FROM dbjobs.jobs j WHERE j.id = ANY (hooked) ORDER BY j.id FOR UPDATE;
  BEGIN
    UPDATE dbjobs.jobs j SET name = rename_job.name WHERE j.id = its_id;
  EXCEPTION WHEN unique_violation THEN
    RAISE EXCEPTION USING ERRCODE = 'JB002', MESSAGE = format('job %s: exists already', dbjobs.full_name(whose, name)), HINT = 'Give another name.';
  END;
  PERFORM dbjobs.log_change('job', its_id, dbjobs.full_name(whose, name), 'rename', reason, was, dbjobs.job_document(its_id));
  FOREACH of_job IN ARRAY coalesce(hooked, '{}') LOOP
    before := dbjobs.job_document(of_job);
    SELECT jsonb_object_agg(h.key, dbjobs.full_name(whose, name)) INTO hooks FROM jsonb_each_text(before -> 'on') h
    WHERE h.value = old_full OR h.value = was ->> 'name' AND before ->> 'owner' = whose;
    CONTINUE WHEN hooks IS NULL; -- somebody gave it other ones while its lock was waited for
    PERFORM dbjobs.put_job('job ' || dbjobs.job_name(of_job), of_job, jsonb_build_object('on', hooks));
    PERFORM dbjobs.log_change('job', of_job, dbjobs.job_name(of_job), 'change', reason, before, dbjobs.job_document(of_job));
  END LOOP;
END
$$
;

COMMENT ON FUNCTION dbjobs.rename_job(text, text, text) IS 'gives a job another name; its history and its runs stay'
;
