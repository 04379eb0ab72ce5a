package engine

// shared are the macros that are the same for all engines: conditions that several statements have, by name. They may hold
// macros of the engine, such as @now. Each is about the rows that its comment names, by their alias in the statement.
var shared = map[string]string{
	// A change that only says what was asked for, of which the state and the definition of a job say nothing. The index changes_asked
	// has these, by @asked_at.
	"@asks": "action IN ('run-now', 'retry', 'cancel', 'backfill', 'skip', 'unskip', 'replan')",

	// A plan p whose state is reported: its job exists and is enabled. Each value is looked up by key, as in queued_ids.
	"@counts": "(SELECT j.enabled FROM dbjobs.jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL) = @true",

	// A run r has ended as the row a of job_after asks. Follower.Follows (store/after.go) says the same.
	"@follows": "(r.state = 'succeeded' AND a.on_end IN ('success', 'end') OR r.state IN ('failed', 'lost') AND a.on_end IN ('failure', 'end')" +
		" OR r.state = 'cancelled' AND a.on_end = 'end')",

	// A run r: a job that comes after its job; NULL: there is none.
	"@followed": "(SELECT f.job_id FROM dbjobs.job_after f WHERE f.after_job_id = r.job_id LIMIT 1)",

	// An end d of an atomic step whose record its own transaction has committed: the record is here. It is not where
	// another server took over without that transaction.
	"@has_record": "(d.recorded IS NULL OR EXISTS (SELECT 1 FROM dbjobs.attempts a" +
		" WHERE a.run_id = d.id AND a.number = d.number AND a.fence = d.fence AND a.state = 'succeeded'))",

	// A pause p that is in force.
	"@holds": "p.resumed_at IS NULL AND p.ends_at > @now",

	// The job of a change l that says its state or its definition. Of one that says neither, such as a request of a run, there may
	// be very many, and the index changes_defined has none of them. Its list is the same.
	"@defined": "l.kind = 'job' AND l.action IN ('create', 'change', 'rename', 'pause', 'resume', 'enable', 'disable', 'abort') AND l.subject_id",

	// A job j of a view of which no pass has seen an edit: of its row, of which schedules it uses, of one of them, or of its own rule.
	"@edited": "(j.id IN (SELECT x.id FROM dbjobs.jobs x WHERE @stale)" +
		" OR j.id IN (SELECT x.job_id FROM dbjobs.job_schedules x WHERE @stale_link)" +
		" OR j.id IN (SELECT y.job_id FROM dbjobs.schedules x JOIN dbjobs.job_schedules y ON y.schedule_id = x.id WHERE @x_stale)" +
		" OR j.id IN (SELECT x.job_id FROM dbjobs.schedules x WHERE x.job_id IS NOT NULL AND @x_stale))",

	// A run r that wakes its job after @later, and whose last attempt began after that, too, or that was made then: the clock of
	// the database was ahead.
	"@is_ahead": "(r.wake_at > @later AND COALESCE((SELECT b.started_at FROM dbjobs.attempts b WHERE b.run_id = r.id AND b.number = r.attempts), r.started_at, r.created_at) > @later)",

	// A pause p that a clock that was ahead has begun or ended, and that still has an effect.
	"@pause_is_ahead": "p.ends_at > @later AND (p.resumed_at IS NOT NULL OR p.since > @later)",

	// A job j whose start a command has resolved while the clock of the database was ahead: of the entries of the change log that gave
	// the job its start, or planned it anew, the last one is of that time. An edit that leaves the start as it is does not count.
	"@start_is_ahead": "j.start_rule IS NOT NULL AND j.not_before > @later AND (SELECT" +
		" CASE WHEN l.changed_at > @later AND l.changed_at < j.not_before THEN 1 ELSE 0 END FROM dbjobs.changes l @by_subject" +
		" WHERE l.kind = 'job' AND l.subject_id = j.id AND (l.action = 'replan' OR @moves_start) ORDER BY l.id DESC LIMIT 1) = 1",

	// A plan that is due, and for which a pass can decide. One that is parked for a cause outside of its job stays due until the
	// repair, although passes come.
	"@late": "next_run <= @now AND parked IS NULL",

	// A run r that may have an attempt that failed. In this form, PostgreSQL knows from its statistics that there are few.
	"@may_have_failed": "(r.attempts > 1 OR r.error IS NOT NULL OR r.state NOT IN ('succeeded', 'queued') OR r.state = 'queued' AND r.attempts > 0)",

	// A change l of a job that has its whole definition, as commands made it.
	"@of_definition": "l.action IN ('create', 'change', 'rename', 'enable', 'disable', 'abort')",

	// A run: until when its job keeps it, as the job is now. At the end of time, and where the job is gone, it stays as it is.
	"@kept_until": "COALESCE(CASE WHEN finished_at < '9000-01-01' THEN @aged END, expires_at)",

	// A change l that says in which state a job is.
	"@of_state": "l.action IN ('create', 'change', 'pause', 'resume', 'enable', 'disable', 'abort')",

	// A run r: in which way it rests, as Job.Rest (store/open_runs.go) defines it. times says whether runs of nominal times rest in
	// this job, and queue is the way of those in the queue.
	"@rests": "CASE WHEN COALESCE(r.number, 0) = 0 OR r.started_at IS NOT NULL OR r.cancel_at IS NOT NULL OR r.occurrence LIKE 'at:%' AND NOT :times THEN 0" +
		" WHEN r.state = 'queued' AND r.lease_until IS NULL THEN :queue" +
		" WHEN r.state = 'waiting' AND r.held_by = 'predecessor' THEN CASE WHEN r.occurrence LIKE 'at:%' AND r.fence = 0 THEN 2 ELSE 1 END" +
		" ELSE 0 END",

	// A plan p: the number of the newest run of its job. For MAX, and without the order of the whole key, MySQL would read all runs
	// of the job.
	"@newest_number": "(SELECT r.number FROM dbjobs.runs r @by_number WHERE r.job_id = p.job_id AND r.number IS NOT NULL ORDER BY r.job_id DESC, r.number DESC LIMIT 1)",

	// A run r: the name of the step that it is in, or is to begin with. The last attempt tells it, if the run has begun since it was made
	// or opened again, and is still in that step. Otherwise the run does: somebody chose the step, or an edit moved it before the run was
	// given back. It is NULL for a run that begins with the first step, whichever that is.
	"@last_step": "COALESCE((SELECT a.step_name FROM dbjobs.attempts a WHERE a.run_id = r.id AND a.number = r.attempts AND a.step = r.step AND r.started_at IS NOT NULL), r.step_name)",

	// The owners and the tags that a pause holds, as sets: there may be many of these pauses, and many jobs.
	"@paused_owners": "(SELECT @as_set p.subject FROM dbjobs.pauses p WHERE p.scope = 'owner' AND p.subject IS NOT NULL AND @holds)",
	"@paused_tags":   "(SELECT @as_set p.subject FROM dbjobs.pauses p WHERE p.scope = 'tag' AND p.subject IS NOT NULL AND @holds)",

	// A plan p: its job is as it was planned, and no other job runs after it.
	"@settles": "(SELECT j.id FROM dbjobs.jobs j WHERE j.id = p.job_id AND CASE WHEN @stale THEN 1 ELSE 0 END = 0) IS NOT NULL" +
		" AND (SELECT a.job_id FROM dbjobs.job_after a WHERE a.after_job_id = p.job_id LIMIT 1) IS NULL",

	// A plan p that is parked or failing: as @counts, and nobody has paused the job, whatever other pauses hold it, since trouble that
	// somebody has paused is known. A job that only itself has paused counts, and a freeze hides none. A pause of an owner or a tag
	// holds each of its jobs, and those of schedules hold a job if all schedules of the job are paused. JobStatus.counts
	// (store/state.go) and v_jobs say the same. There may be many pauses: they are read as sets, and not for each job.
	"@troubles": "p.job_id NOT IN (SELECT p.subject_id FROM dbjobs.pauses p" +
		" WHERE p.scope = 'job' AND p.subject_id IS NOT NULL AND p.paused_by <> 'dbjobs itself' AND @holds)" +
		" AND (SELECT j.enabled FROM dbjobs.jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL" +
		" AND j.owner NOT IN @paused_owners" +
		" AND NOT EXISTS (SELECT 1 FROM dbjobs.jobs j @each_tag WHERE j.id = p.job_id AND CASE WHEN t.value IN @paused_tags THEN 1 ELSE 0 END = 1)" +
		" AND (EXISTS (SELECT 1 FROM dbjobs.schedules o WHERE o.job_id = j.id)" +
		" OR EXISTS (SELECT 1 FROM dbjobs.job_schedules l JOIN dbjobs.schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL" +
		" AND s.id NOT IN (SELECT p.subject_id FROM dbjobs.pauses p WHERE p.scope = 'schedule' AND p.subject_id IS NOT NULL AND @holds))" +
		" OR NOT EXISTS (SELECT 1 FROM dbjobs.job_schedules l JOIN dbjobs.schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL))) = @true",

	// A run whose wake_at has come: since when its job needs a decision. The wake_at of a run that has ended is the instant at
	// which the run was made.
	"@woken": "CASE WHEN finished_at > wake_at AND finished_at <= @now THEN finished_at ELSE wake_at END",
}
