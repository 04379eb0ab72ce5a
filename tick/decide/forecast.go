package decide

import (
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// Forecast is what a job's rules tell beyond the facts on record.
type Forecast struct {
	Next []time.Time // the next nominal times that are to be decided, as the pauses of now leave them
	// Late is how long after its nominal time and jitter the run that ended last was first delivered; zero for a request.
	Late time.Duration
	// Problem is why a rule tells no time: the next pass parks the job for it.
	Problem string
}

// Forecast finds what is to come, with so many of the next nominal times. A job that is disabled, parked, or paused until
// somebody resumes it has none to come.
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
	if v.RepeatAfter > 0 { // what comes after the next is known when that has run
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
