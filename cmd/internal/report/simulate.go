package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/tick/simulate"
)

const (
	fewMinutes = 5   // of the busiest
	fewJobs    = 200 // rows of a table; JSON has all
)

// Simulation prints what passes would decide: sums by job, the busiest minutes, and the gaps. With runs,
// it lists each run first.
func Simulation(w io.Writer, r *simulate.Result, runs bool) error {
	f := newFacts(w)
	f.add("simulated", fmt.Sprintf("%s to %s, with a pass every %s", Instant(r.From), Instant(r.To), r.Every))
	for _, d := range r.Down {
		f.add("down", fmt.Sprintf("%s to %s", Instant(d.From), Instant(d.To)))
	}
	sums := fmt.Sprintf("%s; %d that do not run", Plural(r.Runs, "run"), r.NotRun)
	if r.AtOnce.Runs > 1 {
		sums += fmt.Sprintf("; at most %d at once, at %s", r.AtOnce.Runs, Instant(r.AtOnce.At))
	}
	f.add("runs", sums)
	f.add("runs per day", days(r.Days))
	f.add("hooks without a job", strings.Join(r.Unheard, ", "))
	if err := f.flush(); err != nil {
		return err
	}
	for _, part := range []func(io.Writer, *simulate.Result, bool) error{simulatedRuns, simulatedJobs, busiestMinutes, simulatedGaps} {
		if err := part(w, r, runs); err != nil {
			return err
		}
	}
	return nil
}

// days returns how many runs there are on a day. If there are several days, it returns the fewest and the most.
func days(list []simulate.Day) string {
	if len(list) < 2 {
		return ""
	}
	least, most := list[0], list[0]
	for _, d := range list {
		if d.Runs < least.Runs {
			least = d
		}
		if d.Runs > most.Runs {
			most = d
		}
	}
	return fmt.Sprintf("%d (%s) to %d (%s)", least.Runs, least.Day, most.Runs, most.Day)
}

func simulatedRuns(w io.Writer, r *simulate.Result, runs bool) error {
	if !runs || len(r.List) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	t := newTable(w, "STARTED", "JOB", "SCHEDULED FOR", "TOOK", "STATE", "WAITED FOR")
	for i := range r.List {
		x := &r.List[i]
		t.row(Instant(x.Started), x.Job, cmp.Or(Instant(x.For), x.Because), between(x.Started, x.Finished), x.State, x.Waited)
	}
	if err := t.flush(); err != nil {
		return err
	}
	if r.More {
		_, err := fmt.Fprintln(w, "there are more; see --limit")
		return err
	}
	return nil
}

// more says how many items are not listed.
func more(w io.Writer, n int, what string) error {
	if n <= 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "and %s more; see --json\n", Plural(n, what))
	return err
}

func simulatedJobs(w io.Writer, r *simulate.Result, _ bool) error {
	if len(r.Jobs) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	t := newTable(w, "JOB", "RUNS", "NOT RUN", "WAITED", "MOST LATE", "TOOK")
	jobs := slices.Clone(r.Jobs)
	slices.SortStableFunc(jobs, func(x, y simulate.Facts) int { return y.Runs + total(y.NotRun) - x.Runs - total(x.NotRun) })
	for _, j := range jobs[:min(len(jobs), fewJobs)] {
		runs := count(int64(j.Runs))
		switch {
		case j.Parked != "":
			runs += ", parked: " + j.Parked
		case len(j.Ended) > 0:
			runs += ", " + counts(j.Ended)
		case j.Runs == 0 && j.Disabled:
			runs += ", disabled"
		case j.Runs == 0 && j.Paused:
			runs += ", paused"
		case j.Runs == 0 && j.OnStartup:
			runs += ", on start-up"
		}
		t.row(j.Job, runs, counts(j.NotRun), counts(j.Waited), length(j.Late), tookBy(j.Took))
	}
	if err := t.flush(); err != nil {
		return err
	}
	return more(w, len(jobs)-fewJobs, "job")
}

// tookBy returns how long a run takes, and where that number comes from.
func tookBy(t simulate.Took) string {
	if t.Of == 0 {
		return t.Length.String() + " assumed"
	}
	return time.Duration(t.Length).Round(time.Second / 10).String()
}

func total(m map[string]int) (n int) {
	for _, k := range m {
		n += k
	}
	return n
}

// counts lists numbers with their words.
func counts(m map[string]int) string {
	parts := make([]string, 0, len(m))
	for _, word := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%d %s", m[word], word))
	}
	return strings.Join(parts, ", ")
}

func busiestMinutes(w io.Writer, r *simulate.Result, _ bool) error {
	if len(r.Busiest) == 0 || r.Busiest[0].Runs < 2 {
		return nil
	}
	fmt.Fprintln(w)
	t := newTable(w, "BUSIEST MINUTE", "RUNS BEGIN")
	for _, m := range r.Busiest[:min(len(r.Busiest), fewMinutes)] {
		t.row(Instant(m.At), count(int64(m.Runs)))
	}
	return t.flush()
}

func simulatedGaps(w io.Writer, r *simulate.Result, _ bool) error {
	if r.NotRun == 0 {
		return nil
	}
	fmt.Fprintln(w)
	t := newTable(w, "JOB", "NOT RUN", "FIRST", "LAST", "REASON", "BECAUSE")
	rows := 0
	for i := range r.Jobs {
		for _, g := range r.Jobs[i].Gaps {
			if rows++; rows <= fewJobs {
				t.row(r.Jobs[i].Job, count(int64(g.Times)), Instant(g.First), Instant(g.Last), g.Reason, g.Because)
			}
		}
	}
	if err := t.flush(); err != nil {
		return err
	}
	return more(w, rows-fewJobs, "row")
}

// SimulatedDifference prints what runs differently under two sets of definitions.
func SimulatedDifference(w io.Writer, d *simulate.Difference) error {
	f := newFacts(w)
	f.add("simulated", fmt.Sprintf("%s to %s", Instant(d.From), Instant(d.To)))
	f.add("runs", fmt.Sprintf("%d, and %d after the change", d.Before, d.After))
	f.add("jobs at the same times", count(int64(d.Equal)))
	if err := f.flush(); err != nil || len(d.Jobs) == 0 {
		return err
	}
	fmt.Fprintln(w)
	t := newTable(w, "JOB", "CHANGE", "BEFORE", "AFTER", "FOR EXAMPLE")
	for i := range d.Jobs {
		m := &d.Jobs[i]
		t.row(m.Job, m.Change, count(int64(m.Before)), count(int64(m.After)), example(m))
	}
	return t.flush()
}

// example returns the first of the times at which a job runs differently.
func example(m *simulate.Moved) string {
	var parts []string
	if len(m.Moved) > 0 {
		parts = append(parts, fmt.Sprintf("%s becomes %s", Instant(m.Moved[0].From), Instant(m.Moved[0].To)))
	}
	if len(m.Removed) > 0 {
		parts = append(parts, "not "+Instant(m.Removed[0]))
	}
	if len(m.Added) > 0 {
		parts = append(parts, "also "+Instant(m.Added[0]))
	}
	return strings.Join(parts, ", ")
}
