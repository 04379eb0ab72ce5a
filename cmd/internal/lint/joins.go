package lint

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
)

// joins warns of a job that runs after several jobs whose runs have no interval that ends at the same time, or may miss one.
func (l *linter) joins(j *store.Job) {
	if len(j.After) < 2 {
		return
	}
	anyOf := func(changed func(k *store.Job) bool) bool {
		return l.broughtIn("job", j.Name, "after") || slices.ContainsFunc(j.After, func(a store.After) bool { k := l.jobs[a.Job]; return k != nil && changed(k) })
	}
	times, policies := anyOf(l.whenChanged), anyOf(func(k *store.Job) bool { return l.broughtIn("job", k.Name, "missed", "overlap") })
	if !times && !policies {
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
				if !times {
					return
				}
				l.warn("job", j.FullName(), NeverMeets, "it runs after %s and %s, once for a time that both have, and they have none within %d days",
					names[y], names[x], int(timesAhead.Hours())/24)
				return
			}
		}
	}
	l.mayMiss(j, names, of)
}

// mayMiss warns if one of the jobs after which a job runs has times that another one of them has not, and does not make a run for
// each time. of are those that run at different times, with their names.
func (l *linter) mayMiss(j *store.Job, names []string, of []anchored) {
	left := mostJoined
	for _, a := range j.After {
		k := l.jobs[a.Job]
		if k == nil || k.Missed == store.MissedAll && (k.Overlap == store.OverlapWaitAll || k.Overlap == store.OverlapAllow) {
			continue
		}
		x := l.anchored(k)
		for i := range of {
			if x.Nominal != nil && x.same != of[i].same && l.beyond(x, of[i], &left) {
				l.warn("job", j.FullName(), MayNotMeet, "it runs after %s and %s, once for a time that both have, and a run of %[1]s that makes up for several times counts for the last of them alone",
					a.Job, names[i])
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

// beyond reports whether a job has a time that another one has not. It compares as many times as are left.
func (l *linter) beyond(x, y anchored, left *int) bool {
	t := l.Now
	for n := 0; n < mostMeets && *left > 0; n++ {
		*left--
		tx, err := x.Next(t)
		if err != nil || tx.IsZero() || tx.Sub(l.Now) > timesAhead {
			return false
		}
		ty, err := y.Next(tx.Add(-time.Microsecond))
		if err != nil || ty.IsZero() || !ty.Equal(tx) {
			return err == nil && !ty.IsZero()
		}
		t = tx
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
