package store

import (
	"cmp"
	"context"
	"fmt"

	"github.com/dbjobs/dbjobs/store/engine"
)

// hookUse is a job that names another one as a hook, and the event.
type hookUse struct {
	by    Job
	event string
}

// hookUses finds the jobs that are hooks of jobs that stay: by their full names, each with its first user. If only is
// given, other hooks may be left out.
func (a *applier) hookUses(ctx context.Context, only *Job, going map[int64]bool) (map[string]hookUse, error) {
	uses := map[string]hookUse{}
	add := func(j *Job) {
		if going[j.ID] {
			return
		}
		on := j.On.Of(j.Owner)
		for event, hook := range on.Jobs() {
			if old, known := uses[hook]; !known || cmp.Or(cmp.Compare(j.Name, old.by.Name), cmp.Compare(j.Owner, old.by.Owner)) < 0 {
				uses[hook] = hookUse{Job{Owner: j.Owner, Name: j.Name}, event}
			}
		}
	}
	err := a.eachHooked(ctx, only, func(j *Job) {
		if a.dry.job(j); a.dry.defined[j.ID] == nil {
			add(j)
		}
	})
	for _, j := range a.dry.defined {
		add(j)
	}
	return uses, err
}

// eachHooked reads the jobs that have hooks: id, owner, name and hooks. If only is given, those may be left out that do not
// name it.
func (a *applier) eachHooked(ctx context.Context, only *Job, take func(*Job)) error {
	args := engine.Args{"name": "", "full": ""}
	if only != nil {
		args = engine.Args{"name": only.Name, "full": only.FullName()}
	}
	var j Job
	to := []any{&j.ID, &j.Owner, &j.Name}
	for _, hook := range j.On.All() {
		to = append(to, engine.Nullable(hook))
	}
	return a.tx.Query(ctx, "hook_uses", args, engine.Reads(to...).Each(func(string) {
		take(&j)
		j = Job{}
	}))
}

// mayGo refuses to remove a job that is a hook of a job that stays. The definition of that job would name nothing, and
// could not be applied again.
func (j *Job) mayGo(uses map[string]hookUse) error {
	u, used := uses[j.FullName()]
	if !used {
		return nil
	}
	return &FieldError{"job " + j.FullName(), "cannot be removed",
		fmt.Sprintf("it is the hook of job %s for %s; remove `on.%[2]s` from %s, or remove that job too", u.by.FullName(), u.event, u.by.Name)}
}
