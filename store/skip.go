package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// Skip is a future nominal time that somebody has decided not to run. The plan of the job keeps it until the time has
// come. Then the decision for that time records a gap with the reason Skipped.
type Skip struct {
	At         time.Time `json:"at"`
	ScheduleID int64     `json:"schedule_id,omitempty"` // 0: any schedule with this time
	Schedule   string    `json:"schedule,omitempty"`
	By         string    `json:"by"`
	Reason     string    `json:"reason,omitempty"`
	// Then is the next nominal time of the job after At, by the rules at the time of the skip.
	Then time.Time `json:"then,omitzero"`
}

// Of reports whether the skip is for the times of a schedule.
func (k *Skip) Of(schedule int64) bool { return k.ScheduleID == 0 || k.ScheduleID == schedule }

// SkipList returns the skips of a plan.
func (l *Plan) SkipList() []Skip { return readSkips(l.Skips) }

// SetSkips sets the skips of a plan.
func (l *Plan) SetSkips(list []Skip) { l.Skips = writeSkips(list) }

// KeepSkips removes the skips of times up to an instant: those times are decided.
func (l *Plan) KeepSkips(after time.Time) {
	if l.Skips != "" {
		l.Skips = writeSkips(slices.DeleteFunc(l.SkipList(), func(k Skip) bool { return !k.At.After(after) }))
	}
}

// readSkips reads the text of the column. If the text cannot be read, there are no skips: then the times run.
func readSkips(text string) (list []Skip) {
	if text == "" || json.Unmarshal([]byte(text), &list) != nil {
		return nil
	}
	return list
}

func writeSkips(list []Skip) string {
	if len(list) == 0 {
		return ""
	}
	b, _ := json.Marshal(list) // texts and instants: never fails
	return string(b)
}

// passSkips removes the skips of times that have come, and finds the next time that is not skipped.
func (v *JobStatus) passSkips(now time.Time) {
	v.OpenSkips = slices.DeleteFunc(slices.Clone(v.Skips), func(k Skip) bool { return !k.At.After(v.DecidedThrough) })
	v.Skips = slices.DeleteFunc(slices.Clone(v.OpenSkips), func(k Skip) bool { return !k.At.After(now) })
	for i := range v.Skips { // in their order
		if k := &v.Skips[i]; k.At.Equal(v.NextRun) {
			v.NextRun = k.Then
		}
	}
}

// maxSkips is how many nominal times of a job may be skipped.
const maxSkips = 100

// SkipInput has the facts from which skips are chosen.
type SkipInput struct {
	Now   time.Time
	Job   JobStatus // with its skips, and the pause that holds it
	Rules []Rule    // as they are now
}

// Skips changes which nominal times of a job are not to run: choose returns all future skips as they should be. It is
// called under the lock of the plan, so no time is decided meanwhile, and may be called more than once. The change
// log records the change as action.
//
// Crash windows: after COMMIT the plan has the new skips, before it the old ones. A decision for a skipped time reads
// them under the same lock.
func (s *Store) Skips(ctx context.Context, name, action string, who Author, choose func(SkipInput) ([]Skip, error)) (changed []Skip, err error) {
	err = s.change(ctx, who, func(a *applier) error {
		v, err := s.findJob(ctx, a.tx, name)
		if err != nil {
			return err
		}
		if err := s.lockPlans(ctx, a.tx, v.Job); err != nil {
			return err
		}
		if v, err = s.findJob(ctx, a.tx, v.FullName()); err != nil { // as it is now that no session can decide for it
			return err
		}
		in := SkipInput{Now: a.now, Job: v}
		in.Job.passSkips(a.now)
		// Skips of times that have come stay in the plan.
		come := slices.DeleteFunc(slices.Clone(in.Job.OpenSkips), func(k Skip) bool { return k.At.After(a.now) })
		pauses, err := s.readHeld(ctx, a.tx, []int64{v.ID})
		if err != nil {
			return err
		}
		in.Job.Hold(pauses.OfJob(v.ID))
		if in.Rules, err = s.rulesOf(ctx, a.tx, v.ID); err != nil {
			return err
		}
		before := slices.Clone(in.Job.Skips)
		list, err := choose(in)
		if err != nil {
			return err
		}
		if len(list) > maxSkips {
			return &FieldError{"job " + v.FullName(), "skips", fmt.Sprintf("at most %d times can be skipped at once", maxSkips)}
		}
		for i := range list {
			if list[i].By == "" {
				list[i].By, list[i].Reason = a.o.By, a.o.Reason
			}
		}
		slices.SortFunc(list, func(x, y Skip) int { return x.At.Compare(y.At) })
		if changed = differing(before, list); len(changed) == 0 {
			return nil
		}
		if _, err := a.tx.Exec(ctx, "write_skips", engine.Args{"job": v.ID, "skips": engine.Null(writeSkips(append(come, list...)))}); err != nil {
			return err
		}
		type skipped struct {
			At       time.Time `json:"at"`
			Schedule string    `json:"schedule,omitempty"`
		}
		times := make([]skipped, len(changed))
		for i, k := range changed {
			times[i] = skipped{k.At, k.Schedule}
		}
		return a.record("job", v.FullName(), action, v.ID, nil, struct {
			Times []skipped `json:"times"`
		}{times})
	})
	return changed, err
}

// differing returns the skips that only one of two lists has.
func differing(x, y []Skip) (list []Skip) {
	in := func(k Skip, of []Skip) bool {
		return slices.ContainsFunc(of, func(o Skip) bool { return o.At.Equal(k.At) && o.ScheduleID == k.ScheduleID })
	}
	for _, k := range x {
		if !in(k, y) {
			list = append(list, k)
		}
	}
	for _, k := range y {
		if !in(k, x) {
			list = append(list, k)
		}
	}
	return list
}
