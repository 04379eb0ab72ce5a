-- A run outside of the schedule, and its id: see Store.RunNow (store/request.go). args are texts by name.
CREATE FUNCTION dbjobs.run_now(job text, args jsonb DEFAULT NULL, at timestamptz DEFAULT NULL, key text DEFAULT NULL, reason text DEFAULT '') RETURNS uuid
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  its_id bigint := dbjobs.job_id(job);
  j dbjobs.jobs;
  named text;
  made uuid;
  earlier uuid;
  now CONSTANT timestamptz := statement_timestamp();
BEGIN
  SELECT * INTO j FROM dbjobs.jobs WHERE id = its_id;
  IF j.remove_when_done THEN -- see jobToRun (store/request.go)
    PERFORM p.job_id FROM dbjobs.plans p WHERE p.job_id = its_id FOR UPDATE;
    its_id := dbjobs.job_id(job);
    SELECT * INTO j FROM dbjobs.jobs WHERE id = its_id;
  END IF;
  PERFORM dbjobs.still_there('job', its_id);
  named := dbjobs.full_name(j.owner, j.name);
  IF octet_length(key) > 186 OR key ~ '[\u0001-\u001f\u007f-\u009f]' OR key <> btrim(key) THEN
    RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('job %s: key: %s has more than 186 bytes, a control character, or a blank around it', named, quote_literal(key)),
      HINT = 'Give a short text, such as the id of what the run is for.';
  END IF;
  args := nullif(nullif(args, 'null'), '{}');
  IF jsonb_typeof(args) <> 'object' OR EXISTS (SELECT 1 FROM jsonb_each(CASE WHEN jsonb_typeof(args) = 'object' THEN args END) e WHERE jsonb_typeof(e.value) <> 'string') THEN
    RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('job %s: args: %s is no object of texts', named, args),
      HINT = 'Give JSON such as {"day": "2026-11-19"}; a step reads ${args.day}.';
  END IF;
  IF at NOT BETWEEN timestamptz '1000-01-01T00:00:00Z' AND timestamptz '9999-12-31T23:59:59Z' THEN
    RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('job %s: at: %s is not between the years 1000 and 9999', named, at), HINT = 'Give another instant.';
  END IF;
  -- UUIDv7: ids sort by the time of the request.
  made := (lpad(to_hex(trunc(extract(epoch FROM now) * 1000)::bigint), 12, '0') || '7000'
    || overlay(substr(encode(sha256(convert_to(random()::text || clock_timestamp()::text || pg_backend_pid(), 'UTF8')), 'hex'), 1, 16) PLACING to_hex(8 + (random() * 3)::int) FROM 1 FOR 1))::uuid;
  FOR try IN 1 .. 3 LOOP -- the second one makes the run, if the run that has the key was deleted in between
    INSERT INTO dbjobs.runs (id, job_id, occurrence, queue, priority, scheduled_for, args, ready_at, created_at)
    VALUES (made, j.id, CASE WHEN coalesce(run_now.key, '') <> '' THEN 'key:' || run_now.key ELSE 'now:' || made END, j.queue, j.priority, run_now.at, run_now.args,
      greatest(now, run_now.at), now)
    ON CONFLICT (job_id, occurrence) DO NOTHING;
    EXIT WHEN FOUND;
    SELECT r.id INTO earlier FROM dbjobs.runs r WHERE r.job_id = j.id AND r.occurrence = 'key:' || run_now.key;
    IF FOUND THEN
      RETURN earlier;
    END IF;
  END LOOP;
  PERFORM dbjobs.log_change('job', j.id, named, 'run-now', reason, NULL,
    jsonb_strip_nulls(jsonb_build_object('run', made, 'args', args, 'at', dbjobs.instant_text(at), 'key', nullif(key, ''))));
  RETURN made;
END
$$
;

COMMENT ON FUNCTION dbjobs.run_now(text, jsonb, timestamptz, text, text) IS 'requests a run of a job, and returns its id; a second request with one key gets the run of the first'
;
