package decide

import (
	"fmt"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// Start resolves a start schedule to its first time after an instant, the creation of the job. The
// rule may have any form that package rules reads. An empty zone means UTC. If the rule has no time
// after that instant, Start returns an error.
func Start(rule, zone string, after time.Time) (time.Time, error) {
	r, err := rules.Parse(rule, rules.Defaults{Zone: zone, Start: after})
	if err != nil {
		return time.Time{}, fmt.Errorf("%q: %w", rule, err)
	}
	t, err := r.Next(after)
	if err == nil && t.IsZero() {
		err = fmt.Errorf("has no time after %s; remove it to begin at once", after.UTC().Format(time.RFC3339))
	}
	if err != nil {
		return t, fmt.Errorf("%q: %w", rule, err)
	}
	return t, nil
}

// KeepStart gives a job the not_before that apply gives it: that of the job before it as long as the start is the same, and
// otherwise the first time of the start after the change. A start without such a time is refused by apply.
func KeepStart(j, before *store.Job, now time.Time) {
	switch {
	case j.Start == "":
	case j.KeepsStart(before, now): // it was resolved when it was written
		j.NotBefore = before.NotBefore
	case j.NotBefore.IsZero():
		j.NotBefore, _ = Start(j.Start, j.StartZone, now)
	}
}

// resolveStart sets the not_before of a job that plain SQL has created with only a start schedule. The
// command apply does the same when it creates a job.
func resolveStart(j *store.Job) error {
	if j.Start == "" || !j.NotBefore.IsZero() {
		return nil
	}
	t, err := Start(j.Start, j.StartZone, j.CreatedAt)
	if err != nil {
		return &store.FieldError{Subject: "job " + j.FullName(), Field: "start", Problem: err.Error()}
	}
	j.NotBefore = t
	return nil
}

// readStart resolves the start schedule of a job that plain SQL or a routine has given it, and the decision writes the instant. A job
// that was planned before has a new start: it counts from the change. Without a time since then, the first one since the creation
// of the job has come.
func (d *decision) readStart() {
	j := d.job()
	if d.gone() || j.Start == "" || !j.NotBefore.IsZero() {
		return
	}
	if d.snapshot.Planned.Known {
		j.NotBefore, _ = Start(j.Start, j.StartZone, d.policyChange())
	}
	if err := resolveStart(j); err != nil {
		d.park("%v", err)
	}
	d.start = j.NotBefore
}

// startFound returns the not_before that is to be written. The definition of a parked job stays as it is, for the one who repairs it.
func (d *decision) startFound() time.Time {
	if d.plan.Parked != "" {
		return time.Time{}
	}
	return d.start
}
