-- What a pause is about, with what the change log calls it.
CREATE FUNCTION dbjobs.pause_subject(scope text, subject text, OUT subject_id bigint, OUT named text, OUT kind text, OUT logged text)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  CASE scope
  WHEN 'job' THEN
    subject_id := dbjobs.job_id(subject);
    kind := scope;
    logged := dbjobs.job_name(subject_id);
  WHEN 'schedule' THEN
    subject_id := dbjobs.schedule_id(subject);
    kind := scope;
    logged := subject;
  WHEN 'tag', 'owner' THEN
    IF coalesce(subject, '') = '' THEN
      RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('pause: %s: is missing', scope), HINT = 'Give its name as subject.';
    END IF;
    named := subject;
    kind := 'pause';
    logged := scope || ' ' || subject;
  WHEN 'all' THEN
    kind := 'pause';
    logged := scope;
  ELSE
    RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('pause: scope: %s is not one of job, schedule, tag, owner, all', coalesce(quote_literal(scope), 'NULL')),
      HINT = 'Without a scope, the subject is a job.';
  END CASE;
END
$$
;

COMMENT ON FUNCTION dbjobs.pause_subject(text, text) IS 'for the other routines: what a pause is about'
;
