-- The next time of each job that is planned. A job that is paused, disabled, parked or not planned yet has none here. Later
-- times are known to `dbjobs upcoming`, which reads the rules.
CREATE VIEW dbjobs.v_upcoming AS
SELECT v.next_run, v.id AS job_id, v.owner, v.name AS job, v.state, v.queue, v.rule, v.zone
FROM dbjobs.v_jobs v
WHERE v.next_run IS NOT NULL AND (v.parked IS NULL OR v.parked = '')
;
