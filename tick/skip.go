package tick

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
)

// SkipNext decides that the next nominal times of a job are not to run: those of all its schedules, or of
// the named schedule. It returns these times. They become gaps when they have come.
func SkipNext(ctx context.Context, s *store.Store, job, schedule string, count int, who store.Author) ([]store.Skip, error) {
	return s.Skips(ctx, job, "skip", who, func(in store.SkipInput) ([]store.Skip, error) {
		refuse := func(problem string) ([]store.Skip, error) {
			return nil, &store.FieldError{Subject: "job " + in.Job.FullName(), Field: "skip-next", Problem: problem}
		}
		switch v := &in.Job; {
		case v.RepeatAfter > 0:
			return refuse("it repeats after the end of its last run, so its next times are not known; pause it with --until")
		case v.Disabled:
			return refuse("it is disabled, so it has no next time")
		case v.Paused != nil && v.Paused.Until.IsZero():
			return refuse("it is paused until somebody resumes it, so it has no next time")
		case v.Parked != "":
			return refuse("it is parked, so nothing is planned: " + v.Parked)
		case len(in.Rules) == 0:
			return refuse("it has no schedule, so it has no next time")
		}
		id, err := scheduleOf(&in, schedule)
		if err != nil {
			return refuse(err.Error())
		}
		if slices.ContainsFunc(in.Job.SchedulePauses, func(p store.Pause) bool { return p.SubjectID == id && p.Until.IsZero() }) {
			return refuse("schedule " + schedule + " is paused until somebody resumes it, so it has no next time")
		}
		n, err := decide.NewNominal(&in.Job.Job, in.Rules)
		if err != nil {
			return refuse(err.Error())
		}
		list, err := n.Skip(in.Now, &in.Job, id, count)
		if err != nil {
			return refuse(err.Error())
		}
		if len(list) == 0 {
			return refuse("it has no further time")
		}
		for i := range list {
			list[i].Schedule = schedule
		}
		return append(slices.Clone(in.Job.Skips), list...), nil
	})
}

// scheduleOf is the id of a schedule of the job; 0 if no name is given.
func scheduleOf(in *store.SkipInput, name string) (int64, error) {
	if name == "" {
		return 0, nil
	}
	for _, r := range in.Rules {
		if r.Schedule.Name == name {
			return r.ScheduleID, nil
		}
	}
	if len(in.Job.Schedules) == 0 {
		return 0, fmt.Errorf("it uses no schedule %q, only a rule of its own; leave --schedule out", name)
	}
	return 0, fmt.Errorf("it uses no schedule %q, but %s", name, strings.Join(in.Job.Schedules, ", "))
}

// UndoSkips takes back skips of a job for times that have not come yet, so that these times run: the skips
// for all its schedules, or those for the named schedule. It returns these times.
func UndoSkips(ctx context.Context, s *store.Store, job, schedule string, who store.Author) ([]store.Skip, error) {
	return s.Skips(ctx, job, "unskip", who, func(in store.SkipInput) ([]store.Skip, error) {
		id, err := scheduleOf(&in, schedule)
		if err != nil {
			return nil, &store.FieldError{Subject: "job " + in.Job.FullName(), Field: "skip-next", Problem: err.Error()}
		}
		// By the id: a skip has the name that its schedule had then.
		return slices.DeleteFunc(slices.Clone(in.Job.Skips), func(k store.Skip) bool { return schedule == "" || k.ScheduleID == id }), nil
	})
}
