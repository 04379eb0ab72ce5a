-- Writes which shared schedules a job uses. A link that goes leaves no row that could differ from what is planned: it answers
-- whether there is one, and the job's row has to say so.
CREATE FUNCTION dbjobs.put_links(subject text, its_id bigint, list jsonb) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  want bigint[];
  gone boolean;
BEGIN
  list := CASE jsonb_typeof(list) WHEN 'array' THEN list WHEN 'null' THEN '[]' ELSE jsonb_build_array(list) END;
  SELECT coalesce(array_agg(DISTINCT dbjobs.schedule_id(dbjobs.option_text(subject, 'schedules', e))), '{}') INTO want FROM jsonb_array_elements(list) e;
  DELETE FROM dbjobs.job_schedules l WHERE l.job_id = its_id AND l.schedule_id <> ALL (want)
    AND NOT EXISTS (SELECT 1 FROM dbjobs.schedules s WHERE s.id = l.schedule_id AND s.job_id = its_id);
  gone := FOUND;
  INSERT INTO dbjobs.job_schedules (job_id, schedule_id) SELECT its_id, w FROM unnest(want) w
  WHERE NOT EXISTS (SELECT 1 FROM dbjobs.job_schedules l WHERE l.job_id = its_id AND l.schedule_id = w);
  RETURN gone;
END
$$
;

COMMENT ON FUNCTION dbjobs.put_links(text, bigint, jsonb) IS 'for the other routines: writes which schedules a job uses'
;
