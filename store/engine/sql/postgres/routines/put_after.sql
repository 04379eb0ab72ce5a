-- Writes after which jobs a job runs: a text, or a list of texts and of {"job": ..., "on": ...}. None may close a circle.
CREATE FUNCTION dbjobs.put_after(subject text, its_id bigint, its_owner text, list jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  e jsonb;
  circle text;
  broken text;
  was jsonb := (SELECT jsonb_agg(jsonb_build_array(a.after_job_id, a.on_end) ORDER BY a.after_job_id) FROM dbjobs.job_after a WHERE a.job_id = its_id);
  want jsonb := '[]';
BEGIN
  list := CASE jsonb_typeof(list) WHEN 'array' THEN list WHEN 'null' THEN '[]' ELSE jsonb_build_array(list) END;
  FOR e IN SELECT jsonb_array_elements(list) LOOP
    IF jsonb_typeof(e) <> 'object' THEN
      e := jsonb_build_object('job', e);
    END IF;
    PERFORM dbjobs.check_options(subject || ', after', e, ARRAY['job', 'on']);
    want := want || jsonb_build_array(jsonb_build_array(dbjobs.other_job(subject, 'after', dbjobs.option_text(subject, 'after', e -> 'job'), its_owner),
      coalesce(dbjobs.option_text(subject, 'after', e -> 'on'), 'success')));
  END LOOP;
  SELECT coalesce(jsonb_agg(w ORDER BY (w ->> 0)::bigint), '[]') INTO want FROM jsonb_array_elements(want) w;
  IF want = coalesce(was, '[]') THEN
    RETURN;
  END IF;
  DELETE FROM dbjobs.job_after a WHERE a.job_id = its_id;
  BEGIN
    INSERT INTO dbjobs.job_after (job_id, after_job_id, on_end) SELECT its_id, (w ->> 0)::bigint, w ->> 1 FROM jsonb_array_elements(want) w;
  EXCEPTION
    WHEN unique_violation THEN
      RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s: after: names a job twice', subject), HINT = 'Name each job once.';
    WHEN check_violation THEN
      GET STACKED DIAGNOSTICS broken = CONSTRAINT_NAME;
      PERFORM dbjobs.refuse_check(subject || ': after', 'job_after', broken);
  END;
  WITH RECURSIVE up (named, id) AS ( -- each job once for each that the list names: there may be far more ways to it than jobs
    SELECT a.after_job_id, a.after_job_id FROM dbjobs.job_after a WHERE a.job_id = its_id
    UNION
    SELECT up.named, a.after_job_id FROM up JOIN dbjobs.job_after a ON a.job_id = up.id
  )
  SELECT string_agg(dbjobs.job_name(up.named), ', ' ORDER BY up.named) INTO circle FROM up WHERE up.id = its_id;
  IF circle IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s: after: the jobs run after each other in a circle: it already comes before %s', subject, circle), HINT = 'Leave it out there, or here.';
  END IF;
END
$$
;

COMMENT ON FUNCTION dbjobs.put_after(text, bigint, text, jsonb) IS 'for the other routines: writes after which jobs a job runs'
;
