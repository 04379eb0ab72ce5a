package main

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/logs"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
)

// tellStates warns of jobs that are parked or failing, one line each, until they are repaired. It does so in every
// pass, or, if the pass is quiet, in a pass that is due to remind. If the log format is for programs, the jobs are
// members of the log line of the pass instead. A job whose failed run is in the table of the pass is left out: the table has it with
// --quiet, too, unlike a run that waits for its next attempt.
func (c *cli) tellStates(r *tick.Report) {
	if c.logFormat != logs.Text {
		return
	}
	if r.Unseen { // it may be so for long, and nobody would hear of these jobs
		c.tell(slog.LevelWarn, "which jobs are parked or failing is not known: %s", r.CutShort)
	}
	for _, p := range r.Parked {
		c.tell(slog.LevelWarn, "job %s is parked until it is repaired: %s", p.Job, p.Error)
	}
	c.tellMore(r.ParkedJobs, len(r.Parked), len(r.Parked), "parked")
	told := 0
	for _, f := range r.Failing {
		if slices.ContainsFunc(r.Runs, func(e tick.Ended) bool { return e.Job == f.Job && e.Wrong() }) {
			continue
		}
		what := "its last run has failed"
		if f.Failures > 1 {
			what = fmt.Sprintf("its last %d runs have failed", f.Failures)
		}
		if f.Error != "" {
			what += ": " + f.Error
		}
		c.tell(slog.LevelWarn, "job %s is failing: %s", f.Job, what)
		told++
	}
	c.tellMore(r.FailingJobs, len(r.Failing), told, "failing")
	for _, u := range r.Unserved {
		c.tell(slog.LevelWarn, "no tick runs the jobs of the login %s (due: %d, the first since %s); run a tick that logs in as %[1]s, or change the owner to the login of this tick",
			u.Owner, u.Jobs, report.Instant(u.Since))
	}
}

// tellMore counts the jobs in a state beyond those that are known by name. If it follows no line about such a job, as
// in a dry run, it counts all.
func (c *cli) tellMore(jobs, known, told int, state string) {
	switch {
	case jobs <= known:
	case told > 0:
		c.tell(slog.LevelWarn, "and %s; `dbjobs job list` shows all", report.Plural(jobs-known, "more "+state+" job"))
	case jobs == 1:
		c.tell(slog.LevelWarn, "1 job is %s; `dbjobs job list --state %[1]s` shows it", state)
	default:
		c.tell(slog.LevelWarn, "%d jobs are %s; `dbjobs job list --state %[2]s` shows them", jobs, state)
	}
}

// problem is a job that is parked or failing, as a member of the log line of a pass.
type problem struct {
	Job   string `json:"job"`
	State string `json:"state"` // parked, failing
	Error string `json:"error,omitempty"`
}

func (c *cli) problems(r *tick.Report) (list []problem) {
	for _, p := range r.Parked {
		list = append(list, problem{p.Job, "parked", c.db.Scrub(p.Error)})
	}
	for _, f := range r.Failing {
		list = append(list, problem{f.Job, "failing", c.db.Scrub(f.Error)})
	}
	return list
}

// jobError returns the error that --fail-on-job-error makes of a report; nil if no job failed.
func jobError(r *tick.Report) error {
	var parts []string
	for _, p := range []struct {
		what string
		n    int
	}{{"runs that have failed", r.Failed}, {"jobs that are failing", r.FailingJobs}, {"jobs that are parked", r.ParkedJobs}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d", p.what, p.n))
		}
	}
	if parts == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", errJobFailed, strings.Join(parts, "; "))
}

// tellTooLong warns of queued runs whose timeout is longer than a pass may take. They stay queued, so each pass finds them.
func (c *cli) tellTooLong(r *tick.Report, f *tickFlags) {
	for _, l := range r.TooLong {
		c.tell(slog.LevelWarn, "job %s has a queued run that cannot start: its timeout is %s, but a budget of %s leaves a run less than %s; shorten the timeout or raise --budget",
			l.Job, l.Timeout, f.whole(), store.Duration(tick.Longest(time.Duration(f.whole()))))
	}
}
