package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// A job that runs after several others has one run for each interval, once all of them have a run for it that ended
// as asked. The decision that settles such an end writes a row of job_ends, in its own transaction. That row alone is
// not enough to make the run: two decisions for two of the jobs do not see each other before they commit. So a
// decision for the job itself makes the run, under the lock of its plan. Rows of job_ends that it has not seen ask
// for that decision. The decision after the last commit sees all rows.

// End is an end of a run that counts for a job that runs after several jobs.
type End struct {
	JobID, AfterID int64
	RunID          string
	Meets          string // see Run.Meets
}

// Meets is what the runs of several jobs have in common if one run follows all of them: the end of their interval.
// Runs without an interval meet where they come from the same run: they follow it, also by way of other runs, or are that run.
func (r *Run) Meets() string {
	if r.IntervalEnd.IsZero() {
		return cmp.Or(r.comesFrom(), r.Meeting(), r.ID)
	}
	return r.IntervalEnd.UTC().Format(occurrenceTime)
}

// Meeting is an interval for which each of the jobs that a job runs after has a run that counts.
type Meeting struct {
	Meets      string
	Start, End time.Time // from the earliest start of their intervals; zero: there is none, or it is unknown
	Args       string    // the arguments of all their runs, each after the name of its job
	Followed   bool      // the job has its run for this interval already
}

// WaitingEnd is an end that waits for the ends of other jobs.
type WaitingEnd struct {
	End
	At                         time.Time // when its row was written
	Seen                       bool      // a decision for the job has read it
	IntervalStart, IntervalEnd time.Time // of the run
}

// WaitingEnds reads the ends that wait for the ends of other jobs, by the job that runs after them.
func (s *Store) WaitingEnds(ctx context.Context) (map[int64][]WaitingEnd, error) {
	list := map[int64][]WaitingEnd{}
	var e WaitingEnd
	rd := engine.Reads(&e.JobID, &e.Meets, &e.AfterID, &e.RunID, engine.At(&e.At), &e.Seen, engine.At(&e.IntervalStart), engine.At(&e.IntervalEnd))
	err := s.db.Query(ctx, "waiting_ends", engine.Args{}, rd.Each(func(fault string) {
		if fault == "" {
			list[e.JobID] = append(list[e.JobID], e)
		}
		e = WaitingEnd{}
	}))
	return list, err
}

// endRead is a row of job_ends.
type endRead struct {
	id    int64
	run   string
	meets string
	met   bool
	over  bool // the job no longer runs after that job or that end, or the run is not kept: nothing waits with this end
}

// waitsForOthers is how long the end of a run waits for the ends of the other jobs.
const waitsForOthers = 30 * 24 * time.Hour

// readEnds reads which intervals have met, among those that have a new end.
func (s *Store) readEnds(ctx context.Context, tx *engine.Tx, ids []int64, byJob map[int64]*Snapshot) error {
	var id, job, after int64
	var runID, meets, name string
	var counts, over, followed bool
	var of int
	var run Run
	var list []endOf
	rd := engine.Reads(&id, &job, &meets, &after, &runID, &counts, &over, &followed, &of, engine.Nullable(&name), engine.At(&run.IntervalStart), engine.At(&run.IntervalEnd), jsonInto{&run.Args})
	err := tx.Query(ctx, "batch_ends", engine.Args{"ids": ids}, rd.Each(func(fault string) {
		list = append(list, endOf{endRead{id: id, run: runID, meets: meets, over: over && fault == ""}, job, of, name, counts && fault == "", followed, run})
		name, run = "", Run{}
	}))
	if err != nil {
		return err
	}
	for len(list) > 0 {
		n := slices.IndexFunc(list, func(e endOf) bool { return e.job != list[0].job || e.meets != list[0].meets })
		if n < 0 {
			n = len(list)
		}
		if c := byJob[list[0].job]; c != nil {
			if err := c.meet(list[:n]); err != nil {
				return err
			}
		}
		list = list[n:]
	}
	return nil
}

// endOf is an end together with its run.
type endOf struct {
	endRead
	job    int64
	of     int    // how many jobs must have an end
	name   string // of the job whose run ended
	counts bool   // the job runs after that end of that job, and the run can be read
	// followed is set if the job has its run for this interval: that is so if runs of the other jobs are repeated.
	followed bool
	run      Run
}

// meet adds the ends for one interval. Those that are over are no part of the meeting.
func (c *Snapshot) meet(ends []endOf) error {
	live := slices.DeleteFunc(slices.Clone(ends), func(e endOf) bool { return e.over })
	met := !slices.ContainsFunc(live, func(e endOf) bool { return !e.counts }) && len(live) > 0 && len(live) == live[0].of
	for i := range ends {
		ends[i].met = met
		c.ends = append(c.ends, ends[i].endRead)
	}
	if !met {
		return nil
	}
	ends = live
	m := Meeting{Meets: ends[0].meets, Followed: ends[0].followed, Start: ends[0].run.IntervalStart, End: ends[0].run.IntervalEnd}
	args := map[string]json.RawMessage{}
	for i := range ends {
		e := &ends[i]
		if e.run.IntervalStart.Before(m.Start) { // zero where one start is not known
			m.Start = e.run.IntervalStart
		}
		var given map[string]json.RawMessage
		if e.run.Args == "" || json.Unmarshal([]byte(e.run.Args), &given) != nil {
			continue
		}
		for k, v := range given {
			args[e.name+"."+k] = v
		}
	}
	if len(args) > 0 {
		text, err := json.Marshal(args)
		if err != nil {
			return fmt.Errorf("encode the arguments of a run: %w", err)
		}
		m.Args = string(text)
	}
	c.Met = append(c.Met, m)
	return nil
}

type meetRow struct {
	JobID   int64  `json:"job_id"`
	Meets   string `json:"meets"`
	AfterID int64  `json:"after_job_id"`
	RunID   string `json:"run_id"`
}

// endAsRead is a row of job_ends as it was read. If it has another run by now, it is a new end, which no decision has read: that run
// has taken the place of one that is not kept.
type endAsRead struct {
	ID    int64  `json:"id"`
	RunID string `json:"run_id"`
}

// endRows are the rows of job_ends that a batch writes or deletes.
type endRows struct {
	rows       []meetRow
	known      map[End]struct{} // the rows, without their runs
	done, seen []endAsRead      // rows that were read
	of         []int64          // the jobs to which those rows belong
}

// addEnds adds the ends that a decision has found, and the ends from which it was made.
func (w *writer) addEnds(c *Snapshot, d *Decision) {
	for _, e := range d.Ends {
		key := End{JobID: e.JobID, AfterID: e.AfterID, Meets: e.Meets}
		if _, twice := w.ends.known[key]; !twice { // two runs of a job may be for the same interval
			if w.ends.known == nil {
				w.ends.known = map[End]struct{}{}
			}
			w.ends.known[key], w.ends.rows = struct{}{}, append(w.ends.rows, meetRow{e.JobID, e.Meets, e.AfterID, e.RunID})
		}
	}
	for _, e := range c.ends {
		switch {
		case e.over || slices.Contains(d.Met, e.meets):
			w.ends.done = append(w.ends.done, endAsRead{e.id, e.run})
		case !e.met:
			w.ends.seen = append(w.ends.seen, endAsRead{e.id, e.run})
		}
	}
	if len(c.ends) > 0 {
		w.ends.of = append(w.ends.of, c.Plan.JobID)
	}
}

// writeEnds writes what addEnds has collected.
func (w *writer) writeEnds(ctx context.Context) error {
	if err := bulk(ctx, w, "insert_ends", w.ends.rows, nil); err != nil {
		return err
	}
	if err := bulk(ctx, w, "delete_ends", w.ends.done, nil); err != nil {
		return err
	}
	if err := bulk(ctx, w, "see_ends", w.ends.seen, nil); err != nil || len(w.ends.of) == 0 {
		return err
	}
	_, err := w.tx.Exec(ctx, "forget_ends", engine.Args{"ids": w.ends.of, "since": w.now.Add(-waitsForOthers)})
	return err
}
