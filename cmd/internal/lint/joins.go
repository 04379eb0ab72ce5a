package lint

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
)

// joins warns of a job that runs after several jobs whose runs have no interval that ends at the same time.
func (l *linter) joins(j *store.Job) {
	if len(j.After) < 2 {
		return
	}
	if !l.broughtIn("job", j.Name, "after") && !slices.ContainsFunc(j.After, func(a store.After) bool {
		k := l.jobs[a.Job]
		return k != nil && l.whenChanged(k)
	}) {
		return
	}
	var names []string
	var of []anchored
	known := map[string]bool{}
	for _, a := range j.After {
		k := l.jobs[a.Job]
		if k == nil {
			continue
		}
		if n := l.anchored(k); n.Nominal != nil && !known[n.same] { // those that run at the same times are one
			known[n.same] = true
			names, of = append(names, a.Job), append(of, n)
		}
	}
	left := mostJoined
	for x := range of {
		for y := range x {
			if l.apart(of[x], of[y], &left) {
				l.warn("job", j.FullName(), NeverMeets, "it runs after %s and %s, once for a time that both have, and they have none within %d days",
					names[y], names[x], int(timesAhead.Hours())/24)
				return
			}
		}
	}
}

// anchored has the times of a job that runs by rules alone, if they depend on nothing else.
type anchored struct {
	*decide.Nominal        // nil: the job is another one
	same            string // is equal for jobs that run at the same times
}

// apart reports whether two jobs have no time in common. It compares as many times as are left.
func (l *linter) apart(x, y anchored, left *int) bool {
	const before = time.Microsecond // Next returns times after an instant, not the instant itself
	t := l.Now
	for n := 0; n < mostMeets && *left > 0; n++ {
		*left--
		tx, err := x.Next(t)
		if err != nil || tx.IsZero() {
			return false // the job has no more times: other warnings say that
		}
		ty, err := y.Next(tx.Add(-before))
		if err != nil || ty.IsZero() || tx.Equal(ty) {
			return false
		}
		if tx.Sub(l.Now) > timesAhead {
			return true
		}
		t = ty.Add(-before)
	}
	return false
}

// anchored returns the times of a job that runs by rules alone. It finds them once for each job.
func (l *linter) anchored(j *store.Job) anchored {
	is, known := l.anchors[j]
	if known {
		return is
	}
	if is.Nominal = l.anchor(j); is.Nominal != nil {
		is.same = fmt.Sprint(j.NotBefore, j.NotAfter, j.Start, j.StartZone)
		for _, r := range is.Rules() {
			is.same += "\n" + r.String()
		}
	}
	l.anchors[j] = is
	return is
}

// anchor returns the times of a job that runs by rules alone. It returns nil if the job does not, if the times
// are not known, or if they depend on its name or on when the job or its schedule was created.
func (l *linter) anchor(j *store.Job) *decide.Nominal {
	list, known := l.schedulesOf(j)
	byName := func(s store.Schedule) bool { return strings.Contains(s.Rule, "~") }
	if !known || len(list) == 0 || len(j.After) > 0 || j.RepeatAfter > 0 || slices.ContainsFunc(list, byName) {
		return nil
	}
	n, other := l.nominal(j, list, l.Now), l.nominal(j, list, l.Now.Add(-(37*time.Hour+13*time.Minute+7*time.Second)))
	if n == nil || other == nil {
		return nil
	}
	t := l.Now
	for range 5 {
		x, err := n.Next(t)
		if y, err2 := other.Next(t); err != nil || err2 != nil || !x.Equal(y) {
			return nil
		}
		t = x
	}
	return n
}
