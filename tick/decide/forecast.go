package decide

import (
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// Forecast is what the rules of a job say beyond the facts on record.
type Forecast struct {
	Next []time.Time // the next nominal times to decide, if the pauses stay as they are
	// Late is the delay of the run that ended last: from its nominal time and jitter to its first
	// delivery. It is zero for a requested run.
	Late time.Duration
	// Problem says why a rule gives no time. The next pass parks the job for it.
	Problem string
}

// First is the first nominal time that a schedule gives to a job which is created now; zero: there is none.
func First(j store.Job, s store.Schedule, now time.Time) (time.Time, error) {
	if j.CreatedAt = now; s.CreatedAt.IsZero() {
		s.CreatedAt = now
	}
	n, err := NewNominal(&j, []store.Rule{{Schedule: s}})
	if err != nil {
		return time.Time{}, err
	}
	return n.Next(now)
}

// Forecast finds what is to come, with the next nominal times, at most count of them. A job that is
// disabled, parked, or paused until somebody resumes it has none.
func (n *Nominal) Forecast(now time.Time, v *store.JobStatus, count int) (f Forecast) {
	if !v.LastStarted.IsZero() && !v.LastNominal.IsZero() {
		f.Late = max(0, v.LastStarted.Sub(v.LastNominal.Add(n.jitter(v.LastNominal))))
	}
	if v.Disabled || v.Parked != "" || v.Paused != nil && v.Paused.Until.IsZero() {
		return f
	}
	after := later(now, v.DecidedThrough)
	if v.Paused != nil {
		after = later(after, v.Paused.Until.Add(-instant))
	}
	if v.RepeatAfter > 0 { // the time after the next depends on the end of its run
		if v.NextRun.After(now) && v.Paused == nil {
			f.Next = append(f.Next, v.NextRun)
		}
		return f
	}
	left := int64(count)
	if v.MaxRuns > 0 {
		left = min(left, v.MaxRuns-v.RunsMade)
	}
	for ; left > 0; left-- {
		var err error
		if after, err = n.Next(after); err != nil {
			f.Problem = err.Error()
		}
		if after.IsZero() {
			break
		}
		f.Next = append(f.Next, after)
	}
	return f
}
