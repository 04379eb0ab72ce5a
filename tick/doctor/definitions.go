package doctor

import (
	"context"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
)

// definitions looks at the definitions of the jobs, and at how far the jobs are planned.
func (e *exam) definitions(ctx context.Context) error {
	if err := e.edited(ctx); err != nil {
		return err
	}
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
		if problem := j.Mistake(); problem != "" && j.Parked == "" {
			e.find("steps", Wrong, job, "put its rows in steps right by SQL, or apply the job again", "no run of it can succeed: %s", problem)
		}
		if len(j.Steps) == 0 {
			e.find("steps", Wrong, job, "apply the job again, or insert its rows into steps", "it has no steps, so its runs fail")
		}
		on := j.On.Of(j.Owner)
		for event, hook := range on.Jobs() {
			if !names[hook] {
				e.find("hooks", Warning, job, "make that job, or take the hook away", "on %s it runs the job %s, which is not there", event, hook)
			}
		}
		if j.DecidedThrough.Sub(e.now) > patient {
			e.find("ahead", Wrong, job, "dbjobs job replan "+store.Argument(job), "it is decided through %s, in the future: it sleeps until then", instant(j.DecidedThrough))
		}
		e.lag(j)
	}
	return nil
}

// edited looks at the rules of jobs that were changed since a pass has planned these jobs: the next pass
// parks the jobs whose rule cannot be read.
func (e *exam) edited(ctx context.Context) error {
	var ids []int64
	for i := range e.jobs {
		if j := &e.jobs[i]; j.Stale && j.Parked == "" && j.Unreadable == "" {
			ids = append(ids, j.ID)
		}
	}
	list, faults, err := e.s.RulesOfJobs(ctx, ids)
	for _, id := range ids {
		j := e.of[id]
		problem := faults[id]
		if _, err := decide.NewNominal(&j.Job, list[id]); err != nil && problem == "" {
			problem = err.Error()
		}
		if problem != "" {
			e.find("rule", Warning, j.FullName(), "mend the definition: the next pass parks the job", "it was changed, and cannot be planned: %s", problem)
		}
	}
	return err
}

// lag reports a job that is due, but for which no pass decides.
func (e *exam) lag(j *store.JobStatus) {
	if j.Disabled || j.Parked != "" || j.Paused != nil {
		return
	}
	if late := time.Duration(j.Overdue); late > patient && e.left(e.now.Add(-late)) {
		e.find("overdue", Wrong, j.FullName(), "look at the errors that dbjobs tick prints, whether a tick logs in as the owner of the job, and what starts ticks",
			"it was due %s ago, and no pass has decided for it", store.Duration(late.Truncate(time.Second)))
	}
}
