package tick_test

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/decide/model"
)

// bySQL makes a change like a user who knows nothing about commands.
func (p *passes) bySQL(now time.Time, c model.Change) {
	switch c.What {
	case "calendar":
		became := c.Closed.Define(c.Calendar)
		p.exec("UPDATE dbjobs_calendars SET working_days = ?1, days = ?2 WHERE name = ?3", became.WorkingDays, became.Text(), became.Name)
	case "pause":
		p.exec("INSERT INTO dbjobs_pauses (scope, subject_id, subject, since, until_at) VALUES (?1, ?2, ?3, ?4, ?5)", c.Scope, p.subjectID(c), p.subject(c), p.at(now), p.at(c.Until))
	case "resume":
		p.exec("UPDATE dbjobs_pauses SET resumed_at = ?1, missed = ?5 WHERE scope = ?2 AND coalesce(subject_id, 0) = ?3 AND coalesce(subject, '-') = ?4 AND resumed_at IS NULL",
			p.at(now), c.Scope, cmp.Or(p.subjectID(c), any(0)), cmp.Or(p.subject(c), any("-")), c.Missed)
	case "rule":
		where, r := "name = ?5", c.Rule.Schedule("")
		who := any(model.SharedName(c.Shared))
		if c.Shared < 0 {
			where, who = "job_id = ?5", p.ids[c.Job]
		}
		on, version := cmp.Or(r.OnHoliday, store.HolidaySkip), ""
		if r.Calendar != "" { // without the version, the next pass but one decides once more, for all jobs with this calendar: see calendar_test.go
			days, err := p.d.Calendar(context.Background(), r.Calendar)
			p.must(err)
			version = days.Version()
		}
		p.exec("UPDATE dbjobs_schedules SET rule = ?1, zone = ?2, nonexistent = ?3, ambiguous = ?4, calendar = ?6, on_holiday = ?7, calendar_version = ?8 WHERE "+where,
			r.Rule, r.Zone, r.Nonexistent, r.Ambiguous, who, r.Calendar, on, version)
	case "policy":
		p.policy(c)
	case "request":
		p.exec("INSERT INTO dbjobs_runs (id, job_id, occurrence, queue, ready_at, created_at) VALUES (?1, ?4, ?2, (SELECT queue FROM dbjobs_jobs WHERE id = ?4), ?3, ?3)",
			store.NewRunID(now, 0), c.Request, p.at(now), p.ids[c.Job])
	}
}

// skip skips times of a job, or undoes that. A skip that the job does not allow is refused.
func (p *passes) skip(c model.Change) {
	schedule := ""
	if c.Shared >= 0 {
		schedule = model.SharedName(c.Shared)
	}
	var err error
	if c.What == "skip" {
		_, err = tick.SkipNext(context.Background(), p.d.Store, model.JobName(c.Job), schedule, c.Count, store.Author{})
	} else {
		_, err = tick.UndoSkips(context.Background(), p.d.Store, model.JobName(c.Job), schedule, store.Author{})
	}
	if refused := new(store.FieldError); err != nil && !errors.As(err, &refused) {
		p.t.Fatal(err)
	}
}

// ask cancels a run of a job, or tries one again.
func (p *passes) ask(c model.Change) {
	ctx := context.Background()
	runs, err := p.d.Runs(ctx, store.RunFilter{Job: model.JobName(c.Job), Limit: 1 << 30})
	p.must(err)
	list := make([]*store.Run, len(runs))
	for i := range runs {
		list[i] = &runs[i]
	}
	r := model.Nth(list, c)
	switch {
	case r == nil:
	case c.What == "cancel":
		_, err = p.d.CancelRun(ctx, r.ID, store.Author{})
	default:
		_, err = p.d.RetryRun(ctx, r.ID, "", store.Author{})
	}
	p.must(err)
}

func (p *passes) subjectID(c model.Change) (id any) {
	switch c.Scope {
	case "job":
		return p.ids[c.Job]
	case "schedule":
		return p.schedules[model.SharedName(c.Shared)]
	}
	return nil
}

func (p *passes) subject(c model.Change) any {
	switch c.Scope {
	case "owner":
		return p.owner
	case "tag":
		return c.Tag
	}
	return nil
}

// policy changes a row like a user who knows nothing about commands.
func (p *passes) policy(c model.Change) {
	policy := model.AsWritten(c.Policy)
	j, start, zone := &policy, any(nil), any(nil)
	if j.Start != "" {
		start, zone = j.Start, j.StartZone
	}
	tags := "[]"
	if len(j.Tags) > 0 {
		tags = `["` + j.Tags[0] + `"]`
	}
	within, cycles, after := any(nil), any(nil), any(nil)
	if j.MissedWithin > 0 {
		within = time.Duration(j.MissedWithin).Milliseconds()
	}
	if j.MaxRuns > 0 {
		cycles = j.MaxRuns
	}
	if j.PauseAfterFailures > 0 {
		after = j.PauseAfterFailures
	}
	p.exec(`UPDATE dbjobs_jobs SET overlap = ?1, max_running = ?2, missed = ?3, missed_limit = ?4, missed_within_ms = ?5, missed_grace_ms = ?6, max_runs = ?7,
		not_before = ?8, not_after = ?9, jitter_ms = ?10, enabled = ?11, retry_attempts = ?12, retry_backoff_ms = ?13, on_error = ?14, pause_after_failures = ?15, retry_jitter = 0, max_deliveries = ?17, on_startup = ?18, start_rule = ?19, start_zone = ?20, tags = ?21 WHERE id = ?16`,
		j.Overlap, j.MaxRunning, j.Missed, j.MissedLimit, within, time.Duration(j.MissedGrace).Milliseconds(), cycles, p.at(j.NotBefore), p.at(j.NotAfter),
		time.Duration(j.Jitter).Milliseconds(), !j.Disabled, int(*j.Retry.Attempts), time.Duration(*j.Retry.Backoff).Milliseconds(), j.OnError, after, p.ids[c.Job], j.MaxDeliveries, j.OnStartup, start, zone, tags)
}
