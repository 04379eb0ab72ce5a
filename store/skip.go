package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// Skip is a nominal time to come that somebody has decided not to run. The plan of the job has it until
// the time has come; then the decision for that time records a gap with the reason Skipped.
type Skip struct {
	At         time.Time `json:"at"`
	ScheduleID int64     `json:"schedule_id,omitempty"` // 0: whatever schedule names the time
	Schedule   string    `json:"schedule,omitempty"`
	By         string    `json:"by"`
	Reason     string    `json:"reason,omitempty"`
	// Then is the nominal time of the job after it, by the rules of when it was skipped.
	Then time.Time `json:"then,omitzero"`
}

// Of reports whether the skip is for the times of a schedule.
func (k *Skip) Of(schedule int64) bool { return k.ScheduleID == 0 || k.ScheduleID == schedule }

// SkipList returns the skips of a plan.
func (l *Plan) SkipList() []Skip { return readSkips(l.Skips) }

// SetSkips writes them.
func (l *Plan) SetSkips(list []Skip) { l.Skips = writeSkips(list) }

// KeepSkips forgets the skips of times up to an instant: those are decided.
func (l *Plan) KeepSkips(after time.Time) {
	if l.Skips != "" {
		l.Skips = writeSkips(slices.DeleteFunc(l.SkipList(), func(k Skip) bool { return !k.At.After(after) }))
	}
}

// readSkips reads what the column holds. What cannot be read is none: then the times run.
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

// passSkips leaves out the skips of times that have come, and finds the next time that is not skipped.
func (v *JobStatus) passSkips(now time.Time) {
	v.Skips = slices.DeleteFunc(v.Skips, func(k Skip) bool { return !k.At.After(now) || !k.At.After(v.DecidedThrough) })
	for i := range v.Skips { // in their order
		if k := &v.Skips[i]; k.At.Equal(v.NextRun) {
			v.NextRun = k.Then
		}
	}
}

// comeSkips are the skips of times that have come, and that no pass has decided yet: they stay.
func (v *JobStatus) comeSkips(now time.Time) (list []Skip) {
	for _, k := range v.Skips {
		if !k.At.After(now) && k.At.After(v.DecidedThrough) {
			list = append(list, k)
		}
	}
	return list
}

// maxSkips bounds the times of a job that are skipped.
const maxSkips = 100

// SkipInput has the facts from which skips are chosen.
type SkipInput struct {
	Now   time.Time
	Job   JobStatus // with its skips, and the pause that holds it
	Rules []Rule    // as they stand
}

// Skips changes which nominal times of a job are not to run: choose returns all of those to come, as they
// are to be. It is called under the lock of the plan, so that no time is decided meanwhile, and may be called more
// than once. action is what the change log calls it.
//
// Crash windows: around COMMIT, the plan has the skips or it has not. A decision for a skipped time reads
// them under the same lock.
func (s *Store) Skips(ctx context.Context, name, action string, who Author, choose func(SkipInput) ([]Skip, error)) (changed []Skip, err error) {
	pauses, err := s.Pauses(ctx, false, maxPauses)
	if err != nil {
		return nil, err
	}
	err = s.change(ctx, who, func(a *applier) error {
		v, err := s.findJob(ctx, a.tx, name)
		if err != nil {
			return err
		}
		if err := s.lockPlans(ctx, a.tx, v.Job); err != nil {
			return err
		}
		if v, err = s.findJob(ctx, a.tx, v.FullName()); err != nil { // as it is now that nobody decides for it
			return err
		}
		in := SkipInput{Now: a.now, Job: v}
		come := v.comeSkips(a.now)
		in.Job.passSkips(a.now)
		in.Job.Paused = v.pausedBy(pauses)
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

// differing are the skips that only one of two lists has.
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
