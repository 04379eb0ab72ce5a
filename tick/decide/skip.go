package decide

import (
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// skipped reports whether the skips leave out a time for all rules that give it.
func (n *Nominal) skipped(t time.Time, skips []store.Skip) (bool, error) {
	found := false
	for _, r := range n.rules {
		is, err := r.Next(t.Add(-instant))
		if err != nil {
			return false, err
		}
		if !is.Equal(t) {
			continue
		}
		if !slices.ContainsFunc(skips, func(k store.Skip) bool { return k.At.Equal(t) && k.Of(r.schedule) }) {
			return false, nil
		}
		found = true
	}
	return found, nil
}

// Skip finds the next times of a job, or of one of its schedules, that are not skipped yet: count of
// them, or fewer if there are no more. If the id of the schedule is 0, all schedules count.
func (n *Nominal) Skip(now time.Time, v *store.JobStatus, schedule int64, count int) (list []store.Skip, err error) {
	of := *n
	if schedule != 0 {
		of.rules = slices.DeleteFunc(slices.Clone(n.rules), func(r NominalRule) bool { return r.schedule != schedule })
	}
	for t, err := range of.upcoming(now, now, v) {
		if err != nil {
			return nil, err
		}
		if len(list) == count {
			break
		}
		list = append(list, store.Skip{At: t, ScheduleID: schedule})
	}
	return list, n.follow(list, append(list[:len(list):len(list)], v.Skips...))
}

// follow finds the next time after each of the skipped times, where all are skipped.
func (n *Nominal) follow(list, all []store.Skip) error {
	for i := range list {
		k := &list[i]
		k.Then = k.At // another schedule gives the same time
		out, err := n.skipped(k.At, all)
		if err == nil && out {
			k.Then, err = n.Next(k.At)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// followSkips finds the next time after each skipped time by the rules and bounds that the job has now: somebody may have
// changed them since the skip, and the next run of the job is read from there.
func (d *decision) followSkips() {
	list := d.plan.SkipList()
	if len(list) == 0 || d.plan.Parked != "" {
		return
	}
	n := &Nominal{job: d.job()}
	for i := range d.rules {
		n.rules = append(n.rules, NominalRule{Rule: d.rules[i].recurrence, schedule: d.rules[i].ScheduleID})
	}
	if n.follow(list, list) == nil {
		d.plan.SetSkips(list)
	}
}
