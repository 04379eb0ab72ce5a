package simulate

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dbjobs/dbjobs/store"
)

// Renamed returns the input after the renames of definitions, as apply does them before all else: once, and only where
// the old name is there and the new one is not. A schedule that no job uses is not there: where the new name may be that
// of one, d has only the renames that apply makes. owner is the owner of the jobs that name no owner.
func (in Input) Renamed(d store.Definitions, owner string) Input {
	if len(d.Renames) == 0 {
		return in
	}
	in.Jobs, in.Pauses = slices.Clone(in.Jobs), slices.Clone(in.Pauses)
	for _, r := range d.RenamesInTurn() {
		if r.Kind == "schedule" {
			in.renameSchedule(r)
			continue
		}
		if i := slices.IndexFunc(d.Jobs, func(j store.Job) bool { return j.Name == r.To }); i >= 0 {
			in.renameJob(r, cmp.Or(d.Jobs[i].Owner, owner))
		}
	}
	return in
}

func (in Input) renameSchedule(r store.Rename) {
	if slices.ContainsFunc(in.Jobs, func(j Job) bool { return slices.Contains(j.Schedules, r.To) }) {
		return
	}
	for i := range in.Pauses {
		if p := &in.Pauses[i]; p.Scope == store.ScopeSchedule && p.Subject == r.From {
			p.Subject = r.To
		}
	}
	for i := range in.Jobs {
		j := &in.Jobs[i]
		k := slices.Index(j.Schedules, r.From)
		if k < 0 {
			continue
		}
		j.Schedules, j.Rules = slices.Clone(j.Schedules), slices.Clone(j.Rules)
		j.Schedules[k] = r.To
		for n := range j.Rules {
			if s := &j.Rules[n].Schedule; s.Name == r.From {
				s.Name = r.To
			}
		}
	}
}

func (in Input) renameJob(r store.Rename, owner string) {
	at := func(name string) int {
		full := strings.TrimPrefix(owner+"/"+name, "/")
		return slices.IndexFunc(in.Jobs, func(j Job) bool { return j.FullName() == full })
	}
	i := at(r.From)
	if i < 0 || at(r.To) >= 0 {
		return
	}
	was := in.Jobs[i].Job
	in.Jobs[i].Name = r.To
	is := in.Jobs[i].FullName()
	for k := range in.Jobs {
		j := &in.Jobs[k]
		named := func(name string) bool { return name == was.FullName() || name == was.Name && j.Owner == was.Owner }
		j.After = slices.Clone(j.After)
		for n := range j.After {
			if named(j.After[n].Job) {
				j.After[n].Job = is
			}
		}
		for _, hook := range j.On.All() {
			if named(*hook) {
				*hook = is
			}
		}
	}
}
