package lint

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/decide"
)

// The limits on the times of a job that are examined, so that the work is limited.
const (
	timesAhead = 400 * 24 * time.Hour
	mostGaps   = 200
	mostMeets  = 3000   // times of two jobs that are compared
	mostJoined = 20_000 // such times, of all jobs after which one job runs
)

// times warns of the times of a job, as far as its schedules are known.
func (l *linter) times(j *store.Job) {
	list, known := l.schedulesOf(j)
	if !known {
		return
	}
	when := l.whenChanged(j)
	if when || l.broughtIn("job", j.Name, "not_before", "not_after", "start", "start_zone") {
		for i := range list {
			l.bounds(j, &list[i])
		}
	}
	if when || l.broughtIn("job", j.Name, "retry", "steps", "overlap", "max_running") {
		l.retries(j, list)
	}
	l.joins(j)
	l.byHand(j)
}

// schedulesOf returns the schedules of a job, and its own rule. known is false if one of them is not known here.
func (l *linter) schedulesOf(j *store.Job) (list []store.Schedule, known bool) {
	if j.Own != nil {
		list = append(list, *j.Own)
	}
	for _, name := range j.Schedules {
		if s := l.schedules[name]; s != nil {
			list = append(list, *s)
		} else if s, found := l.Manifest.Shared[name]; found {
			list = append(list, s)
		} else {
			return nil, false
		}
	}
	return list, true
}

// whenChanged reports whether the change concerns when the job runs.
func (l *linter) whenChanged(j *store.Job) bool {
	return l.broughtIn("job", j.Name, "own", "schedules") || slices.ContainsFunc(j.Schedules, func(name string) bool {
		return l.broughtIn("schedule", name, "rule", "zone", "nonexistent", "ambiguous", "calendar", "on_holiday")
	})
}

// nominal returns the times of a job as if the job and its schedules were created at an instant; nil: they cannot
// be found.
func (l *linter) nominal(j *store.Job, list []store.Schedule, at time.Time) *decide.Nominal {
	of := *j
	of.CreatedAt = at
	all := make([]store.Rule, len(list))
	for i, s := range list {
		if s.CreatedAt = s.Made(); s.CreatedAt.IsZero() {
			s.CreatedAt = at
		}
		all[i] = store.Rule{Schedule: s, Calendar: l.Calendars[s.Calendar]}
	}
	n, err := decide.NewNominal(&of, all)
	if err != nil {
		return nil // a rule that cannot be read was refused before
	}
	return n
}

// bounds warns of a schedule that has times, but none between the start and the end of the job.
func (l *linter) bounds(j *store.Job, s *store.Schedule) {
	free := *j
	free.NotBefore, free.NotAfter, free.Start = time.Time{}, time.Time{}, ""
	one := []store.Schedule{*s}
	bound, all := l.nominal(j, one, l.Now), l.nominal(&free, one, l.Now)
	if bound == nil || all == nil {
		return
	}
	if t, err := bound.Next(l.Now); err != nil || !t.IsZero() {
		return
	}
	name := "its schedule " + s.Name
	if s.Name == "" {
		name = "its rule"
	}
	switch t, err := all.Next(l.Now); {
	case err != nil:
	case !t.IsZero():
		l.warn("job", j.FullName(), NeverMeets, "%s has no time between start and end of the job; the next one is %s", name, report.Instant(t))
	case s.Name != "" && !l.broughtIn("schedule", s.Name, "rule", "calendar"): // else the schedule is exhausted, and that is said
		l.warn("job", j.FullName(), NeverMeets, "%s has no time to come", name)
	}
}

// retries warns of a step whose waits between its tries alone last longer than the shortest time between two
// nominal times.
func (l *linter) retries(j *store.Job, list []store.Schedule) {
	if j.Overlap == store.OverlapAllow && j.MaxRunning > 1 {
		return
	}
	var normal store.Job
	normal.Normalize()
	shortest := time.Duration(-1)
	for i := range j.Steps {
		retry := j.Steps[i].Retry.Or(j.Retry).Or(normal.Retry)
		waits := time.Duration(0)
		for n := 1; n < int(*retry.Attempts) && waits < timesAhead; n++ {
			waits += decide.Backoff(retry, n)
		}
		if waits == 0 {
			continue
		}
		if shortest < 0 {
			shortest = l.shortestGap(j, list)
		}
		if shortest > 0 && waits > shortest {
			l.warn("job", j.FullName(), RetriesOutlast, "%d tries of step %s wait %s in all, and two times of the job are only %s apart",
				int(*retry.Attempts), j.Steps[i].Name, store.Duration(waits), store.Duration(shortest))
		}
	}
}

// shortestGap returns the shortest time between two of the next times of a job; 0: not known.
func (l *linter) shortestGap(j *store.Job, list []store.Schedule) time.Duration {
	n := l.nominal(j, list, l.Now)
	if n == nil || len(list) == 0 {
		return 0
	}
	shortest, last, t := time.Duration(0), time.Time{}, l.Now
	for range mostGaps {
		var err error
		if t, err = n.Next(t); err != nil || t.IsZero() || t.Sub(l.Now) > timesAhead {
			return shortest
		}
		if gap := t.Sub(last); !last.IsZero() && (shortest == 0 || gap < shortest) {
			shortest = gap
		}
		last = t
	}
	return shortest
}

// byHand warns of a change after which nothing makes a job run. For a new job, the first run says that.
func (l *linter) byHand(j *store.Job) {
	if j.Own != nil || len(j.Schedules)+len(j.After) > 0 || j.OnStartup || j.RepeatAfter > 0 || l.New ||
		!l.broughtIn("job", j.Name, "own", "schedules", "after", "on_startup", "repeat_after") ||
		slices.ContainsFunc(l.changes["job "+j.Name], func(c store.Change) bool { return c.Action == "create" }) ||
		l.hooks[j.Name] || l.hooks[j.FullName()] {
		return
	}
	l.warn("job", j.FullName(), RunsByHandOnly, "the change removes everything that made it run: now it runs on request only")
}

// unused warns of new schedules that no job of the file uses. A file without jobs may be for other files.
func (l *linter) unused(s *store.Schedule) {
	isNew := l.New || slices.ContainsFunc(l.changes["schedule "+s.Name], func(c store.Change) bool { return c.Action == "create" })
	if isNew && len(l.Manifest.Jobs) > 0 && !l.used[s.Name] {
		l.warn("schedule", s.Name, UnusedSchedule, "no job of the manifest uses it")
	}
}

// allowed warns of a step that needs something that this host does not allow to the owner of the job.
func (l *linter) allowed(j *store.Job, s *store.Step) {
	if l.Host == nil || j.Queue != "" && j.Queue != tick.OwnQueue {
		return
	}
	owner := j.Owner
	for _, c := range l.changes["job "+j.Name] {
		if before, _, found := strings.Cut(c.Subject, "/"); found && owner == "" {
			owner = before
		}
	}
	if err := l.Host.Refusal(owner, s.Executor, s.Spec); err != nil {
		l.warn("job", j.FullName(), NotAllowedHere, "step %s: %s", s.Name, fmt.Sprint(err))
	}
}
