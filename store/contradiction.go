package store

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// The defaults of policies that need another policy: a job that has a default has not asked for anything.
const (
	usualLimit       = 100
	usualMissedGrace = Duration(2 * time.Minute)
	usualMaxBackoff  = Duration(time.Hour)
)

// ValidatePolicies is Validate without steps and schedules. Decisions use it for rows that plain SQL may have
// written.
func (j *Job) ValidatePolicies() error {
	wrong := []check{{"name", checkName(j.Name)}}
	for i := range policies {
		if err := policies[i].problem(j); err != nil {
			wrong = append(wrong, check{policies[i].Key, err})
		}
	}
	if j.Own != nil {
		wrong = append(wrong, check{"rule", notEmpty(j.Own.Rule)})
	}
	return firstError("job "+j.FullName(), append(wrong, j.contradictions()...)...)
}

// contradictions finds policies that have no effect, or contradict each other. A default contradicts nothing.
func (j *Job) contradictions() []check {
	var checks []check
	refuse := func(where bool, field, format string, a ...any) {
		if where {
			checks = append(checks, check{field, fmt.Errorf(format, a...)})
		}
	}
	refuse(j.MaxRunning > 1 && j.Overlap != OverlapAllow, "max_running", "%d needs overlap: allow", j.MaxRunning)
	refuse(j.MissedLimit != usualLimit && j.Missed != MissedAll, "missed_limit", "%d needs missed: all", j.MissedLimit)
	refuse(j.MissedGrace != usualMissedGrace && j.Missed != MissedSkip, "missed_grace", "%s needs missed: skip", j.MissedGrace)
	refuse(!j.NotAfter.IsZero() && j.NotAfter.Before(j.NotBefore), "not_after", "is before %s", j.beginning())
	refuse(j.PauseAfterFailures > 1 && j.OnError == OnErrorPause, "pause_after_failures", "%d has no effect beside on_error: pause, which pauses at the first failure; remove one of them", j.PauseAfterFailures)
	if *j.Retry.MaxBackoff != usualMaxBackoff {
		checks = append(checks, check{"retry.max_backoff", j.Retry.contradiction()})
	}
	refuse(j.StartZone != "" && j.Start == "", "start_zone", "needs start")
	if err := j.EndsBeforeNext(j.Retry.Attempts); err != nil {
		checks = append(checks, check{"retry.attempts", err})
	}
	endless := ""
	switch {
	case len(j.After) > 0:
		endless = "after"
	case j.OnStartup:
		endless = "on_startup"
	}
	refuse(j.RemoveDone && endless != "", "remove_when_done", "this job is never done: it runs whenever %s says so", endless)
	return checks
}

// contradiction refuses a limit that is below the first wait, where both are given.
func (r Retry) contradiction() error {
	if r.Backoff == nil || r.MaxBackoff == nil || *r.MaxBackoff >= *r.Backoff {
		return nil
	}
	return fmt.Errorf("%s is below backoff, %s", *r.MaxBackoff, *r.Backoff)
}

// beginning names the field from which not_before comes.
func (j *Job) beginning() string {
	if j.Start != "" {
		return "the first time of start, " + j.NotBefore.Format(time.RFC3339)
	}
	return "not_before"
}

// EndsBeforeNext refuses attempts until the next occurrence if that occurrence waits for the end of the run.
func (j *Job) EndsBeforeNext(attempts *Attempts) error {
	if attempts != nil && *attempts == 0 && j.RepeatAfter > 0 {
		return errors.New("until-next never ends with repeat_after, because the next occurrence comes only after the run; use a number")
	}
	return nil
}

// checkSchedules refuses a name that comes twice: a job has one link to a schedule. Normalize has sorted the names.
func checkSchedules(names []string) error {
	for i := 1; i < len(names); i++ {
		if names[i] == names[i-1] {
			return fmt.Errorf("names schedule %s twice", names[i])
		}
	}
	return nil
}

// ValidateTimes checks the policies against the number of the job's schedules, including its own rule.
func (j *Job) ValidateTimes(schedules int) error {
	subject := "job " + j.FullName()
	switch {
	case schedules > 0 && j.RepeatAfter > 0:
		return &FieldError{subject, "repeat_after", "cannot be combined with a schedule or rule; remove one of them (start sets the first run of repeat_after)"}
	case schedules > 0 || j.RepeatAfter > 0:
		return nil
	case j.Start != "":
		return &FieldError{subject, "start", "has no effect: the job has no schedule, rule or repeat_after; add one of these, or remove start"}
	case j.RemoveDone:
		return &FieldError{subject, "remove_when_done", "this job is never done: it has no schedule, rule or repeat_after; add one of these, or remove it"}
	}
	return nil
}

// loses takes a schedule away from the job. What ValidateTimes would refuse of a job without any time goes with its last one.
func (j *Job) loses(schedule string) {
	j.Schedules = slices.DeleteFunc(slices.Clone(j.Schedules), func(name string) bool { return name == schedule })
	if len(j.Schedules) > 0 || j.Own != nil || j.RepeatAfter > 0 {
		return
	}
	if j.Start != "" { // not_before was computed from it
		j.NotBefore = time.Time{}
	}
	j.Start, j.StartZone, j.RemoveDone = "", "", false
}
