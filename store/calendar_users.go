package store

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/dbjobs/dbjobs/store/engine"
)

// removeCalendar refuses to remove a calendar that a schedule names: the jobs of the schedule would be parked.
func (a *applier) removeCalendar(ctx context.Context, c Calendar) error {
	users, err := a.keepers(ctx, c.Name)
	if err != nil {
		return err
	}
	if len(users) > 0 {
		return &FieldError{"calendar " + c.Name, "cannot be removed", "it is used by " + strings.Join(users, ", ") + "; remove `calendar` from these first"}
	}
	if err := a.run(ctx, engine.Args{"name": c.Name}, "delete_calendar"); err != nil {
		return err
	}
	return a.record("calendar", c.Name, "remove", 0, c, nil)
}

// keeper is a shared schedule, or a job with a rule of its own.
type keeper struct {
	kind string
	id   int64
}

// keepers returns the first few that name a calendar.
func (a *applier) keepers(ctx context.Context, calendar string) (users []string, err error) {
	const shown = 5
	limit := shown
	if a.dry.on { // some of them may go, or name another one
		limit = math.MaxInt32
	}
	after := a.dry.keepers(a.schedules)
	var schedule, job int64
	var name, owner, jobName string
	err = a.tx.Query(ctx, "first_keepers", engine.Args{"name": calendar, "limit": limit},
		engine.Reads(&schedule, engine.Nullable(&name), engine.Nullable(&job), engine.Nullable(&owner), engine.Nullable(&jobName)).Each(func(string) {
			k, user := keeper{KindSchedule, schedule}, name
			if name == "" {
				k, user = keeper{KindJob, job}, FullName(owner, jobName)
			}
			is, known := after[k]
			if delete(after, k); known {
				user = is.name
			}
			if !known || is.calendar == calendar {
				users = append(users, k.kind+" "+user)
			}
			schedule, name, job, owner, jobName = 0, "", 0, "", ""
		}))
	maps.DeleteFunc(after, func(_ keeper, is kept) bool { return is.calendar != calendar })
	for _, k := range slices.SortedFunc(maps.Keys(after), func(x, y keeper) int {
		return cmp.Or(-cmp.Compare(x.kind, y.kind), cmp.Compare(after[x].name, after[y].name)) // schedules are made before the rules of jobs
	}) {
		users = append(users, k.kind+" "+after[k].name)
	}
	return users[:min(shown, len(users))], err
}

// kept is what a dry run knows of a keeper: the name and the calendar that it would have. One that would go has none.
type kept struct{ name, calendar string }

// keepers returns what a dry run would have changed. schedules are those of the definitions.
func (d *dryRun) keepers(schedules map[string]Schedule) map[keeper]kept {
	after := map[keeper]kept{}
	if !d.on {
		return after
	}
	for name := range schedules {
		after[keeper{KindSchedule, schedules[name].ID}] = kept{name, schedules[name].Calendar}
	}
	for _, jobs := range []map[int64]*Job{d.moved, d.defined} {
		for id, j := range jobs {
			is := kept{name: j.FullName()}
			if j.Own != nil {
				is.calendar = j.Own.Calendar
			}
			after[keeper{KindJob, id}] = is
		}
	}
	for _, k := range d.gone {
		after[k] = kept{}
	}
	return after
}
