-- Stretches decided not to run: the nominal times of a schedule after from_at and up to through_at that have no run.
CREATE VIEW dbjobs.v_gaps AS
SELECT g.job_id, j.owner, j.name AS job, g.schedule_id,
  (SELECT s.name FROM dbjobs.schedules s WHERE s.id = g.schedule_id) AS schedule,
  g.reason, g.from_at, g.through_at, g.rule, g.recorded_at
FROM (SELECT * FROM dbjobs.gaps) AS g
LEFT JOIN dbjobs.jobs j ON j.id = g.job_id
WHERE @visible(j.owner)
;
