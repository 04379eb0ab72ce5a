package tick

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// Outlook is what a job's rules tell beyond the facts on record.
type Outlook struct {
	Next []time.Time // the next nominal times that are to be decided, as the pauses of now leave them
	// Late is how long after its nominal time and jitter the run that ended last was first delivered; zero for a request.
	Late time.Duration
	// Problem is why a rule tells no time: the next pass parks the job for it.
	Problem string
}

// said is an error in words, which an outlook is told and does not fail for.
func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// LookOut finds the outlook of a job, with so many of its next nominal times. A job that is disabled, parked, or paused
// until somebody resumes it has none to come.
func LookOut(ctx context.Context, s *store.Store, v *store.JobStatus, count int) (Outlook, error) {
	var o Outlook
	list, err := s.Rules(ctx, v.ID)
	var unreadable *store.FieldError
	if errors.As(err, &unreadable) || v.Unreadable != "" {
		o.Problem = cmp.Or(v.Unreadable, said(err))
		return o, nil
	}
	if err != nil {
		return o, err
	}
	n, err := NewNominal(&v.Job, list)
	if o.Problem = said(err); o.Problem != "" {
		return o, nil
	}
	now, err := s.Now(ctx)
	if err != nil {
		return o, err
	}
	if !v.LastStarted.IsZero() && !v.LastNominal.IsZero() {
		o.Late = max(0, v.LastStarted.Sub(v.LastNominal.Add(n.jitter(v.LastNominal))))
	}
	if v.Disabled || v.Parked != "" || v.Paused != nil && v.Paused.Until.IsZero() {
		return o, nil
	}
	after := later(now, v.DecidedThrough)
	if v.Paused != nil {
		after = later(after, v.Paused.Until.Add(-instant))
	}
	if v.RepeatAfter > 0 { // what comes after the next is known when that has run
		if v.NextRun.After(now) && v.Paused == nil {
			o.Next = append(o.Next, v.NextRun)
		}
		return o, nil
	}
	left := int64(count)
	if v.MaxRuns > 0 {
		left = min(left, v.MaxRuns-v.RunsMade)
	}
	for ; left > 0; left-- {
		after, err = n.Next(after)
		if o.Problem = said(err); after.IsZero() {
			break
		}
		o.Next = append(o.Next, after)
	}
	return o, nil
}

// jitter is what a decision adds to a nominal time.
func (n *Nominal) jitter(t time.Time) time.Duration {
	d := &decision{c: &store.Case{Job: *n.job}}
	for _, r := range n.rules {
		d.live = append(d.live, live{recurrence: r})
	}
	return d.jitter(t)
}
