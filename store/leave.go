package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// leave handles the definitions that the manifest owns but does not name any more. With Prune it removes them: jobs
// first, then schedules. Without Prune they stay, and each apply lists them: otherwise a job that was deleted from
// its file would continue unnoticed. Jobs of an owner of whom the definitions have no job stay in any case: the files
// of two owners may have one name, and a login that sees both would remove with the one what the other defines. What such
// a job uses stays with it. In an installation with owners, so do schedules and calendars of such an owner.
func (a *applier) leave(ctx context.Context, d Definitions) error {
	named, going := map[int64]bool{}, map[int64]bool{}
	owners := map[string]bool{}
	if len(d.Jobs) == 0 { // all of the login's own are gone from the file
		owners[a.login] = true
	}
	for _, j := range d.Jobs {
		owners[cmp.Or(j.Owner, a.login)] = true
		if k := a.known.byName[a.fullName(j)]; k != nil {
			named[k.ID] = true
		}
	}
	gone := slices.DeleteFunc(a.known.owned, func(k *Job) bool { return named[k.ID] })
	slices.SortFunc(gone, func(x, y *Job) int { return cmp.Compare(x.FullName(), y.FullName()) })
	var others []*Job
	gone = slices.DeleteFunc(gone, func(k *Job) bool {
		if !owners[k.Owner] {
			a.left("job", k.FullName(), ofAnotherOwner)
			others = append(others, k)
		}
		return !owners[k.Owner]
	})
	for _, k := range gone {
		going[k.ID] = true
	}
	var uses map[string]hookUse
	if a.o.Prune && len(gone) > 0 {
		var err error
		if uses, err = a.hookUses(ctx, nil, going); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(gone, batchSize) {
		if !a.o.Prune {
			for _, k := range part {
				a.left("job", k.FullName(), "")
			}
			continue
		}
		jobs, err := a.definitions(ctx, part)
		if err != nil {
			return err
		}
		if err := a.removeJobs(ctx, jobs, going, uses); err != nil {
			return err
		}
	}
	owners[a.login] = true // who applies a file makes its schedules and calendars
	schedules, calendars, err := a.ofOthers(ctx, owners)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(others, batchSize) {
		jobs, err := a.definitions(ctx, part)
		if err != nil {
			return err
		}
		for i := range jobs {
			for _, name := range jobs[i].Schedules {
				schedules[name] = cmp.Or(schedules[name], usedByAnother)
			}
			if own := jobs[i].Own; own != nil {
				calendars[own.Calendar] = cmp.Or(calendars[own.Calendar], usedByAnother)
			}
		}
	}
	if err := a.leaveSchedules(ctx, d.Schedules, schedules, calendars); err != nil {
		return err
	}
	return a.leaveCalendars(ctx, d.Calendars, calendars)
}

// ofOthers has the schedules and calendars of the manifest that belong to none of these owners, with the reason why they stay.
// Without owners in the installation, what a login has made belongs to everybody.
func (a *applier) ofOthers(ctx context.Context, owners map[string]bool) (schedules, calendars map[string]string, err error) {
	schedules, calendars = map[string]string{}, map[string]string{}
	var kind, name, owner string
	err = a.tx.Query(ctx, "manifest_owners", engine.Args{"manifest": a.o.Manifest}, engine.Reads(&kind, &name, &owner).Each(func(string) {
		if of := schedules; !owners[owner] {
			if kind == KindCalendar {
				of = calendars
			}
			of[name] = ofAnotherOwner
		}
		kind, name, owner = "", "", ""
	}))
	return schedules, calendars, err
}

// leaveSchedules is leave for schedules. Those that have a reason stay, and the calendars of these are added to calendars.
func (a *applier) leaveSchedules(ctx context.Context, named []Schedule, reasons, calendars map[string]string) error {
	var gone []Schedule
	err := a.s.readSchedules(ctx, a.tx, "schedules_owned", engine.Args{"manifest": a.o.Manifest}, func(c Schedule, _ int64) {
		a.dry.schedule(&c)
		gone = append(gone, c)
	})
	if err != nil {
		return err
	}
	stays := map[string]bool{}
	for _, c := range named {
		stays[c.Name] = true
	}
	gone = slices.DeleteFunc(gone, func(c Schedule) bool { return stays[c.Name] })
	slices.SortFunc(gone, func(x, y Schedule) int { return cmp.Compare(x.Name, y.Name) })
	gone = slices.DeleteFunc(gone, func(c Schedule) bool {
		if reasons[c.Name] != "" {
			a.left("schedule", c.Name, reasons[c.Name])
			calendars[c.Calendar] = cmp.Or(calendars[c.Calendar], usedByAnother)
		}
		return reasons[c.Name] != ""
	})
	if !a.o.Prune {
		for _, c := range gone {
			a.left("schedule", c.Name, "")
		}
		return nil
	}
	if err := a.s.countUsers(ctx, a.tx, gone); err != nil {
		return err
	}
	for _, c := range gone {
		if err := a.removeSchedule(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// ofAnotherOwner is the reason of what Prune leaves, and usedByAnother that of what is used by it.
const (
	ofAnotherOwner = "the file has no job of its owner"
	usedByAnother  = "a job that stays uses it"
)

// left lists a definition that stays although its manifest does not name it. That is not a change, so the change log
// has no entry. The reason is empty if Prune removes the definition.
func (a *applier) left(kind, subject, reason string) {
	a.changes = append(a.changes, Change{At: a.now, By: a.o.By, Kind: kind, Subject: subject, Action: "left", Reason: reason})
}

func (a *applier) removeSchedule(ctx context.Context, c Schedule) error {
	if c.Jobs = a.dry.users(c.Name, c.Jobs); c.Jobs > 0 {
		users, err := a.users(ctx, c)
		if err != nil {
			return err
		}
		return &FieldError{"schedule " + c.Name, "cannot be removed", "it is used by " + users + "; remove it from these jobs first, as `dbjobs schedule remove " + Argument(c.Name) + " --detach` does"}
	}
	if err := a.endPauses(ctx, ScopeSchedule, c.ID); err != nil {
		return err
	}
	if err := a.run(ctx, engine.Args{"id": c.ID}, "delete_schedule"); err != nil {
		return err
	}
	a.dry.goes(KindSchedule, c.ID)
	return a.record("schedule", c.Name, "remove", c.ID, c, nil)
}

// endPauses ends the pauses of jobs or schedules before these are removed. Afterwards no command could name them.
func (a *applier) endPauses(ctx context.Context, scope string, ids ...int64) error {
	return a.run(ctx, engine.Args{"now": a.now, "scope": scope, "ids": ids, "resumed_by": a.o.By}, "end_pauses")
}

// users names jobs that use a schedule, and counts those beyond the first few.
func (a *applier) users(ctx context.Context, c Schedule) (string, error) {
	const shown = 5
	var names []string
	var j Job
	err := a.tx.Query(ctx, "first_users", engine.Args{"id": c.ID, "limit": shown + len(a.dry.links)}, engine.Reads(&j.Owner, &j.Name).Each(func(string) {
		names = append(names, j.FullName())
		j = Job{}
	}))
	if a.dry.on {
		names = a.dry.named(c.Name, names)
		names = names[:min(shown, len(names))]
	}
	if more := c.Jobs - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", "), err
}

// removeJobs marks the rows as removed, which keeps them as history and frees the names, and deletes
// their links and their own schedules. Their pauses end. The next pass notices the changed rows. It
// refuses to remove a job that another job runs after, unless that job is removed, too: it would stay
// enabled and never run again. It also refuses to remove a hook that is in use.
func (a *applier) removeJobs(ctx context.Context, jobs []Job, going map[int64]bool, uses map[string]hookUse) error {
	ids := make([]int64, len(jobs))
	for i := range jobs {
		ids[i] = jobs[i].ID
	}
	followers := map[int64][]Job{}
	var of int64
	var f Job
	err := a.tx.Query(ctx, "followers", engine.Args{"ids": ids}, engine.Scan(func() {
		if !going[f.ID] && a.follows(f.ID, of, true) {
			followers[of] = append(followers[of], f)
		}
	}, &of, &f.ID, &f.Owner, &f.Name))
	if err != nil {
		return err
	}
	for i := range jobs {
		list := append(followers[jobs[i].ID], a.newFollowers(jobs[i].ID, followers[jobs[i].ID], going)...)
		if len(list) == 0 {
			if err := jobs[i].mayGo(uses); err != nil {
				return err
			}
			continue
		}
		f := slices.MinFunc(list, func(x, y Job) int { return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Owner, y.Owner)) })
		return &FieldError{"job " + jobs[i].FullName(), "cannot be removed",
			fmt.Sprintf("job %s runs after it and would never run again; remove `after` from %s, or remove that job too", f.FullName(), f.Name)}
	}
	if err := a.endPauses(ctx, ScopeJob, ids...); err != nil {
		return err
	}
	statements := []string{"remove_jobs", "finish_links", "finish_schedules"}
	if slices.ContainsFunc(jobs, func(j Job) bool { return len(j.After) > 1 }) {
		statements = append(statements, "forget_ends")
	}
	if err := a.run(ctx, engine.Args{"now": a.now, "ids": ids, "since": a.now.Add(time.Second)}, statements...); err != nil {
		return err
	}
	for i := range jobs {
		a.dry.goes(KindJob, jobs[i].ID)
		for _, name := range jobs[i].Schedules {
			a.dry.uses(name, jobs[i].FullName(), -1)
		}
		if err := a.record("job", jobs[i].FullName(), "remove", jobs[i].ID, jobs[i], nil); err != nil {
			return err
		}
	}
	return a.flush(ctx)
}
