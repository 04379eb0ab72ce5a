package doctor

import (
	"context"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// definitions looks at the jobs as they are defined, and at how far they are planned.
func (e *exam) definitions(context.Context) error {
	names := map[string]bool{}
	for i := range e.jobs {
		names[e.jobs[i].FullName()] = true
	}
	for i := range e.jobs {
		j := &e.jobs[i]
		job := j.FullName()
		if j.Unreadable != "" {
			e.find("unreadable", Wrong, job, "put the value right by SQL, or apply the job again", "its rows cannot be read: %s", j.Unreadable)
			continue
		}
		if j.Parked != "" {
			e.find("parked", Warning, job, "mend the definition; the next pass plans it", "it is parked: %s", j.Parked)
		}
		if len(j.Steps) == 0 {
			e.find("steps", Wrong, job, "apply the job again, or insert its rows into steps", "it has no steps, so its runs fail")
		}
		on := j.On.Of(j.Owner)
		_ = on.Each(func(event string, hook *string) error {
			if *hook != "" && *hook != store.NoHook && !names[*hook] {
				e.find("hooks", Warning, job, "make that job, or take the hook away", "on %s it runs the job %s, which is not there", event, *hook)
			}
			return nil
		})
		if j.DecidedThrough.Sub(e.now) > patient {
			e.find("ahead", Wrong, job, "dbjobs job replan "+job, "it is decided through %s, in the future: it sleeps until then", instant(j.DecidedThrough))
		}
		e.lag(j)
	}
	return nil
}

// lag reports a job that passes leave alone although it is due.
func (e *exam) lag(j *store.JobStatus) {
	if !e.ticking || j.Disabled || j.Parked != "" || j.Paused != nil {
		return
	}
	if late := time.Duration(j.Overdue); late > patient {
		e.find("overdue", Wrong, j.FullName(), "look at the errors that dbjobs tick prints, and whether a tick logs in as the owner of the job",
			"it was due %s ago, and no pass has decided for it, although ticks come", store.Duration(late.Truncate(time.Second)))
	}
}
