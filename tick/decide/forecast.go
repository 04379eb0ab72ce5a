package decide

import (
	"iter"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// Forecast is what the rules of a job say beyond the facts on record.
type Forecast struct {
	Next []time.Time // the next nominal times to decide, if the pauses stay as they are
	// Late is the delay of the run that ended last: from its nominal time and jitter to its first
	// delivery. It is zero for a requested run.
	Late time.Duration
	// Holidays are the next times that calendars take out or move, within the next three months.
	Holidays []rules.Holiday
	// Problem says why a rule gives no time. The next pass parks the job for this reason.
	Problem string
}

// First is the first nominal time that a schedule gives to a job that is created now; zero: there is none. A schedule that
// the database does not have yet is made now. The calendar is the one that the schedule names; nil: it names none.
func First(j store.Job, s store.Schedule, c *store.Calendar, now time.Time) (time.Time, error) {
	return FirstAfter(j, s, c, now, now)
}

// FirstAfter is First for a job whose pause lasts until an instant: the first time after that.
func FirstAfter(j store.Job, s store.Schedule, c *store.Calendar, now, after time.Time) (time.Time, error) {
	j.CreatedAt = now
	if s.CreatedAt = s.Made(); s.CreatedAt.IsZero() {
		s.CreatedAt = now
	}
	n, err := NewNominal(&j, nil)
	if err != nil {
		return time.Time{}, err
	}
	r, err := new(ruleCache).defined(&store.Rule{Schedule: s, Calendar: c}, &j) // its error is one of the schedule, and names no job
	if err != nil {
		return time.Time{}, err
	}
	n.rules = []NominalRule{{Rule: r}}
	return n.Next(after)
}

// Forecast finds the next nominal times, at most count of them, and the other facts of a Forecast. A job
// that is disabled, parked, or paused until somebody resumes it has no next times.
func (n *Nominal) Forecast(now time.Time, v *store.JobStatus, count int) (f Forecast) {
	if !v.LastStarted.IsZero() && !v.LastNominal.IsZero() {
		f.Late = max(0, v.LastStarted.Sub(v.LastNominal.Add(n.jitter(v.LastNominal))))
	}
	for t, err := range n.upcoming(now, now, v) {
		if err != nil {
			f.Problem = err.Error()
		}
		if err != nil || len(f.Next) == count {
			break
		}
		f.Next = append(f.Next, t)
	}
	f.Holidays = n.Holidays(now, now.AddDate(0, 3, 0), count)
	return f
}

// NextRepeat is the next nominal time of a job with repeat_after, as the next pass will find it, if nothing is on record that
// it has not seen; zero: there is none until a run ends. was is the job before an edit that no pass has seen; without
// repeat_after, it had another rule. A time that is due already is now. A pause of the job ends at its set time.
func NextRepeat(v *store.JobStatus, was *store.Job, now time.Time) time.Time {
	planned, t := !v.DecidedThrough.IsZero(), v.CreatedAt.Truncate(time.Second)
	// What was due while the job was disabled, or had used up its max_runs, is a gap, like what was due before an edit.
	edited := planned && (v.Stale || v.RepeatAfter != was.RepeatAfter || was.Disabled || was.UsedUp(v.RunsMade))
	switch {
	case v.UsedUp(v.RunsMade):
		return time.Time{}
	case planned && v.RunsOpen > 0 && (was.RepeatAfter == 0 || v.RepeatFrom.Equal(v.LastScheduled)): // its end counts
		return time.Time{}
	case planned && was.RepeatAfter > 0:
		if !v.RepeatFrom.IsZero() {
			t = second(v.RepeatFrom.Add(time.Duration(v.RepeatAfter)))
		}
	case !v.LastFinished.IsZero():
		t = second(earlier(v.LastFinished, now).Add(time.Duration(v.RepeatAfter)))
	}
	t = later(t, second(v.NotBefore))
	left := v.LeftPause()
	due := left == nil && !v.RepeatFrom.IsZero() && !v.OverdueSince().IsZero() // by the definition before the edit
	switch {
	case edited && (due || !t.After(now)), // an edit makes no time due in the past
		left != nil && !left.Missed && !t.After(left.ResumedAt): // it becomes a gap
		t = now.Add(time.Duration(v.RepeatAfter))
	}
	if p := v.Paused; p != nil && t.Before(p.Until) {
		if t.Before(p.Since) { // its run waits for the end of the pause
			t = p.Until
		} else { // it becomes a gap
			t = p.Until.Add(time.Duration(v.RepeatAfter))
		}
	}
	return second(later(t, now))
}

// second is the whole second at an instant, or the next one.
func second(t time.Time) time.Time { return t.Add(time.Second - instant).Truncate(time.Second) }

// Foresee gives a job with repeat_after its next run where the plan does not have it: the job is paused until a time, or no pass
// has seen an edit of the job, or the end of its pause.
func Foresee(v *store.JobStatus, now time.Time) {
	if v.RepeatAfter > 0 && v.NextRun.IsZero() && !v.Rests() && (v.Paused != nil || v.Stale || v.LeftPause() != nil) {
		v.NextRun = NextRepeat(v, &v.Job, now)
	}
}

// Before returns the nominal times of a job that are still to be decided, from the instant from on (included), and before to:
// at most count. The times from now on count for max_runs.
func (n *Nominal) Before(now, from, to time.Time, v *store.JobStatus, count int) (list []time.Time) {
	for t, err := range n.upcoming(now, from.Add(-instant), v) {
		if err != nil || !t.Before(to) || len(list) == count {
			break
		}
		list = append(list, t)
	}
	return list
}

// upcoming yields the nominal times after an instant that are still to be decided, if the pauses stay as they are. The times
// between now and that instant count for max_runs.
func (n *Nominal) upcoming(now, after time.Time, v *store.JobStatus) iter.Seq2[time.Time, error] {
	return func(yield func(time.Time, error) bool) {
		if v.Rests() {
			return
		}
		if v.RepeatAfter > 0 { // the time after the next one depends on when the run of the next one ends
			within := !v.NextRun.IsZero() && (v.NotAfter.IsZero() || !v.NextRun.After(v.NotAfter))
			if t := second(later(v.NextRun, now)); within && !t.Before(after) { // what is due is for the next pass
				yield(t, nil)
			}
			return
		}
		n, left := n.unpaused(v.SchedulePauses), int64(0)
		if v.MaxRuns > 0 {
			made, err := n.Made(earlier(now, after), after, v)
			if err != nil {
				yield(time.Time{}, err)
				return
			}
			left = v.MaxRuns - made
		}
		for t := later(after, decided(v)); v.MaxRuns == 0 || left > 0; left-- {
			var err error
			if t, err = n.nextKept(t, v.Skips); t.IsZero() && err == nil || !yield(t, err) || err != nil {
				return
			}
		}
	}
}

// Made returns how many runs a job with max_runs will have made after its times in (now, through], if the pauses stay as they
// are. Runs whose times depend on other runs are not foretold.
func (n *Nominal) Made(now, through time.Time, v *store.JobStatus) (int64, error) {
	left := v.MaxRuns - v.RunsMade
	if left <= 0 || v.RepeatAfter > 0 || v.Rests() {
		return v.RunsMade, nil
	}
	more, err := n.unpaused(v.SchedulePauses).count(later(now, decided(v)), through, v.Skips, left)
	return v.RunsMade + more, err
}

// decided is the instant up to which no time of a job is still to be decided, if its pause stays as it is.
func decided(v *store.JobStatus) time.Time {
	if v.Paused != nil {
		return later(v.DecidedThrough, v.Paused.Until.Add(-instant))
	}
	return v.DecidedThrough
}

// nextKept is Next without the times that are skipped.
func (n *Nominal) nextKept(after time.Time, skips []store.Skip) (time.Time, error) {
	t, err := n.Next(after)
	for out := true; out && err == nil && !t.IsZero() && len(skips) > 0; {
		if out, err = n.skipped(t, skips); out && err == nil {
			t, err = n.Next(t)
		}
	}
	return t, err
}
