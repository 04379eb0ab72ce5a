-- The change log, with the owner of the job or schedule that was changed.
CREATE VIEW dbjobs.v_changes AS
SELECT c.id, c.changed_at, c.changed_by, c.kind, c.subject_id, c.subject, c.action, c.reason, c.was, c.became,
  COALESCE(j.owner, x.owner, c.changed_by) AS owner
FROM (SELECT * FROM dbjobs.changes) AS c
LEFT JOIN dbjobs.jobs j ON j.id = c.subject_id AND c.kind = 'job'
LEFT JOIN dbjobs.schedules x ON x.id = c.subject_id AND c.kind = 'schedule'
WHERE @visible(COALESCE(j.owner, x.owner, c.changed_by))
;
