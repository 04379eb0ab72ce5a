package crash

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// record is what a course leaves, in a form in which two courses can be compared. What a crash may rightly change is
// left out here, and nowhere else:
//   - ids: a run is known by its job and occurrence, a request by its job and number;
//   - instants at which something was done (created, started, finished, settled, ready, decided through): after a crash
//     a later pass does it. Nominal times, intervals and the next run are compared;
//   - a gap's bounds, for the same reason: a gap stands for nominal times, and those are compared;
//   - fences, losses, holders: each delivery that did not come back costs one more;
//   - attempts that were lost or cut. A run that has one, or whose step met the fault itself and failed by it, is
//     touched: of each of its steps only the last attempt is compared, since what is done at least once may be done
//     again. Runs that the fault did not touch are compared attempt by attempt;
//   - a run that another pass took before the frozen pass could replace it: it has run and is not cancelled, or the fault
//     made it fail, and the newer time replaced it while it waited for its next attempt;
//   - history beyond what is kept: it goes with the next run of its job, or with a sweep, also for a removed job;
//   - the ticks' own stretches.
type record struct {
	runs  map[string]*runRecord
	lines []string // plans, gaps, pauses, changes
	wrong []string // what no ledger may have
}

type runRecord struct {
	line    string   // the same in both courses, touched or not
	tries   []string // the attempts in order: step and state
	touched bool
	effects []string // step, one for each
	lost    bool     // delivered once, and never came back: max_deliveries 1 promises this
	newer   bool     // of a job whose newer occurrences replace older ones
}

// last returns the ends of the steps: the last attempt of each.
func (r *runRecord) last() []string {
	var out []string
	for i, try := range r.tries {
		name, state, _ := strings.Cut(try, " ")
		if state == store.Lost || state == "cut" {
			continue
		}
		later := slices.ContainsFunc(r.tries[i+1:], func(t string) bool { return strings.HasPrefix(t, name+" ") && !strings.HasSuffix(t, " "+store.Lost) })
		if !later {
			out = append(out, try)
		}
	}
	return out
}

// takenFirst reports whether another pass took the run that the unbroken course replaced.
func (r *runRecord) takenFirst(model *runRecord) bool {
	if !r.newer || !strings.HasPrefix(model.line, store.Cancelled) || len(r.last()) != 1 {
		return false
	}
	switch r.last()[0] {
	case "act succeeded":
		return strings.HasPrefix(r.line, store.Succeeded)
	case "act failed": // by the fault; a retry was still to come
		return r.touched && r.line == model.line && len(model.tries) == 0
	}
	return false
}

// differences compares with the record of the unbroken course.
func (r *record) differences(model *record) []string {
	out := slices.Clone(r.wrong)
	for key, want := range model.runs {
		got, ok := r.runs[key]
		switch {
		case !ok:
			out = append(out, "missing: "+key)
			continue
		case got.lost:
			continue
		case got.takenFirst(want):
			continue
		case got.line != want.line:
			out = append(out, fmt.Sprintf("%s is %s; want %s", key, got.line, want.line))
		case !got.touched && !slices.Equal(got.tries, want.tries):
			out = append(out, fmt.Sprintf("%s was not touched and has the attempts %q; want %q", key, got.tries, want.tries))
		case !slices.Equal(got.last(), want.last()):
			out = append(out, fmt.Sprintf("%s has the attempts %q; want the steps' ends %q", key, got.tries, want.last()))
		case !got.touched && !slices.Equal(got.effects, want.effects):
			out = append(out, fmt.Sprintf("%s was not touched and has the effects %q; want %q", key, got.effects, want.effects))
		}
	}
	for key := range r.runs {
		if model.runs[key] == nil {
			out = append(out, "too many: "+key)
		}
	}
	lost := func(line string) bool { // the plan's facts of a job whose run was rightly lost
		return strings.HasPrefix(line, "plan once ") && slices.ContainsFunc(r.once(), func(run *runRecord) bool { return run.lost })
	}
	for _, l := range model.lines {
		if !slices.Contains(r.lines, l) && !lost(l) {
			out = append(out, "missing: "+l)
		}
	}
	for _, l := range r.lines {
		if !slices.Contains(model.lines, l) && !lost(l) {
			out = append(out, "too many: "+l)
		}
	}
	slices.Sort(out)
	return out
}

func (r *record) once() []*runRecord {
	var out []*runRecord
	for key, run := range r.runs {
		if strings.HasPrefix(key, "once ") {
			out = append(out, run)
		}
	}
	return out
}

// keeps returns how many runs are kept of each job, by its id. Removed jobs are among them.
func (w *world) keeps() (map[int64]int64, error) {
	rows, err := w.d.SQL.Query("SELECT id, keep_runs FROM " + w.d.Table("jobs"))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	kept := map[int64]int64{}
	for rows.Next() {
		var id, n int64
		if err := rows.Scan(&id, &n); err != nil {
			return nil, err
		}
		kept[id] = n
	}
	return kept, rows.Err()
}

// read reads the ledger.
func (w *world) read() (*record, error) {
	ctx := context.Background()
	out := &record{runs: map[string]*runRecord{}}
	runs, err := w.d.Runs(ctx, store.RunFilter{Limit: 10_000})
	if err != nil {
		return nil, err
	}
	jobs, err := w.d.Jobs(ctx, store.JobFilter{})
	if err != nil {
		return nil, err
	}
	keys, after := map[string]string{}, map[string]string{} // by id
	slices.Reverse(runs)
	newest := map[string]int64{}
	for _, r := range runs {
		newest[r.Job] = max(newest[r.Job], r.Number)
		switch kind, rest, _ := strings.Cut(r.Occurrence, ":"); kind {
		case "now":
			keys[r.ID] = fmt.Sprintf("%s now:#%d", r.Job, r.Number)
		case "after":
			after[r.ID] = rest
		case "hook": // its key has a fence, or an instant
			keys[r.ID] = r.Job + " hook:" + fact(&r, "event", "job", "scheduled_for", "count", "streak")
		default:
			keys[r.ID] = r.Job + " " + r.Occurrence
		}
	}
	for _, r := range runs { // at one instant, the id of a follower may come before the id of its cause
		if cause := after[r.ID]; cause != "" {
			keys[r.ID] = fmt.Sprintf("%s after:(%s)", r.Job, keys[cause])
		}
	}
	kept, err := w.keeps()
	if err != nil {
		return nil, err
	}
	byID := map[string]*runRecord{}
	nominal := map[int64]map[time.Time]bool{}
	for _, r := range runs {
		if nominal[r.JobID] == nil {
			nominal[r.JobID] = map[time.Time]bool{}
		}
		nominal[r.JobID][r.ScheduledFor] = true
		if n := kept[r.JobID]; n > 0 && r.Number <= newest[r.Job]-n {
			continue
		}
		rec := &runRecord{line: fmt.Sprintf("%s #%d, settled %t, held %q, for %s in %s..%s, priority %d, %q", r.State, r.Number, !r.SettledAt.IsZero(), r.HeldBy,
			clock(r.ScheduledFor), clock(r.IntervalStart), clock(r.IntervalEnd), r.Priority, r.Queue)}
		rec.newer = r.Job == "replaced"
		rec.lost = r.Job == "once" && r.State == store.Lost
		if !r.StartedAt.IsZero() && r.StartedAt.Before(r.ScheduledFor) {
			out.wrong = append(out.wrong, "early: "+keys[r.ID])
		}
		if out.runs[keys[r.ID]] != nil {
			out.wrong = append(out.wrong, "twice: "+keys[r.ID])
		}
		out.runs[keys[r.ID]], byID[r.ID] = rec, rec
	}
	if err := w.readAttempts(out, runs, byID, keys); err != nil {
		return nil, err
	}
	if err := w.readPlans(out, keys); err != nil {
		return nil, err
	}
	for i := range jobs {
		if err := w.readGaps(out, &jobs[i], nominal[jobs[i].ID]); err != nil {
			return nil, err
		}
	}
	return out, w.readSkips(out, jobs, nominal)
}

func clock(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("15:04:05.999999")
}

// atomicSteps are the names of the scenario's atomic steps.
var atomicSteps = map[string]bool{"two": true, "tell": true, "mark": true}

// add adds a line. If the same line is there already, it gets a number.
func (r *record) add(line string) {
	for n := 2; slices.Contains(r.lines, line); n++ {
		line = fmt.Sprintf("%s (%d)", strings.TrimSuffix(line, fmt.Sprintf(" (%d)", n-1)), n)
	}
	r.lines = append(r.lines, line)
}
