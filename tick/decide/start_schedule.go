package decide

import (
	"fmt"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// Start resolves a start schedule to its first time after an instant, the creation of the job. The
// rule is in any form that package rules reads. An empty zone is UTC. A rule without such a time is
// an error.
func Start(rule, zone string, after time.Time) (time.Time, error) {
	r, err := rules.Parse(rule, rules.Defaults{Zone: zone, Start: after})
	if err != nil {
		return time.Time{}, fmt.Errorf("%q: %s", rule, strings.TrimPrefix(err.Error(), "rule: "))
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

// resolveStart gives a job its not_before if plain SQL created it with a start schedule only, as
// apply would have done.
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

// readStart resolves the start schedule of the job, and the one that it was planned with.
func (d *decision) readStart() {
	if d.gone() {
		return
	}
	if err := resolveStart(d.job()); err != nil {
		d.park("%v", err)
	}
	if w := &d.snapshot.Planned; w.Known && w.Start != "" && w.NotBefore.IsZero() {
		w.NotBefore, _ = Start(w.Start, w.StartZone, d.job().CreatedAt) // without a time, there is no bound
	}
}
