-- Stretches decided not to run: the nominal times of a schedule after from_at and up to through_at that have no run.
CREATE VIEW dbjobs.v_gaps AS
SELECT g.job_id, j.owner, j.name AS job, s.name AS schedule, g.reason, g.from_at, g.through_at, g.rule, g.recorded_at
FROM dbjobs.gaps g
LEFT JOIN dbjobs.jobs j ON j.id = g.job_id
LEFT JOIN dbjobs.schedules s ON s.id = g.schedule_id
;
COMMENT ON VIEW dbjobs.v_gaps IS 'Stretches decided not to run, each with its reason'
;
