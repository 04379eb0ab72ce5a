package store

import "slices"

// Covers reports whether a pause is about a job, as the job is now or as it was planned. A pause of a schedule is kept with
// the job's other pauses: the reader applies it to the times of that schedule only.
func (p *Pause) Covers(c *Snapshot) bool {
	switch p.Scope {
	case ScopeAll:
		return true
	case ScopeJob:
		return p.SubjectID == c.Plan.JobID
	case ScopeOwner, ScopeTag:
		return p.Names(c.Job.Owner, c.Job.Tags) || c.Planned.Known && p.Names(c.Planned.Owner, c.Planned.Tags)
	case ScopeSchedule:
		for i := range c.Rules {
			if c.Rules[i].ScheduleID == p.SubjectID {
				return true
			}
		}
	}
	return false
}

// Names reports whether a pause of an owner, or of a tag, names this owner, or one of these tags. A pause of something else does
// not depend on them.
func (p *Pause) Names(owner string, tags []string) bool {
	switch p.Scope {
	case ScopeOwner:
		return p.Subject == owner
	case ScopeTag:
		return slices.Contains(tags, p.Subject)
	}
	return true
}

// covered finds the jobs of a page that a pause covers, without a look at each job for each pause: there may be thousands of both.
type covered struct {
	all map[int64]*Snapshot
	// By the subjects of pauses: schedules by their ids, owners and tags by their names. Made for the first pause that needs it.
	by map[coveredBy][]*Snapshot
}

type coveredBy struct {
	scope string
	id    int64
	name  string
}

// pause returns the jobs for which Pause.Covers is true.
func (f *covered) pause(p *Pause) (list []*Snapshot) {
	switch p.Scope {
	case ScopeJob:
		if c := f.all[p.SubjectID]; c != nil {
			list = append(list, c)
		}
	case ScopeSchedule:
		return f.subjects()[coveredBy{p.Scope, p.SubjectID, ""}]
	case ScopeOwner, ScopeTag:
		return f.subjects()[coveredBy{p.Scope, 0, p.Subject}]
	default:
		for _, c := range f.all {
			if p.Covers(c) {
				list = append(list, c)
			}
		}
	}
	return list
}

func (f *covered) subjects() map[coveredBy][]*Snapshot {
	if f.by != nil {
		return f.by
	}
	f.by = map[coveredBy][]*Snapshot{}
	for _, c := range f.all {
		add := func(scope string, id int64, name string) {
			key := coveredBy{scope, id, name}
			if list := f.by[key]; len(list) == 0 || list[len(list)-1] != c { // as it is, and as it was planned
				f.by[key] = append(list, c)
			}
		}
		for i := range c.Rules {
			add(ScopeSchedule, c.Rules[i].ScheduleID, "")
		}
		names := func(owner string, tags []string) {
			add(ScopeOwner, 0, owner)
			for _, tag := range tags {
				add(ScopeTag, 0, tag)
			}
		}
		if names(c.Job.Owner, c.Job.Tags); c.Planned.Known {
			names(c.Planned.Owner, c.Planned.Tags)
		}
	}
	return f.by
}
