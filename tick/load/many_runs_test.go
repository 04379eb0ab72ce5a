package load

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// waitingRuns makes jobs for each of which many runs wait behind each other, in a queue that nobody serves.
func waitingRuns(t *testing.T, d *storetest.DB, jobs, each int) {
	t.Helper()
	var defs store.Definitions
	for i := range jobs {
		defs.Jobs = append(defs.Jobs, store.Job{Name: fmt.Sprint("job ", i), Queue: "nobody", Overlap: store.OverlapWaitAll, Tags: []string{"etl"}, Keep: store.Keep{Runs: 100_000},
			Steps: []store.Step{ticktest.Step("", "SELECT 1")}})
	}
	ticktest.Apply(t, d, defs)
	ticktest.Run(t, d)
	w, exec := words[d.Engine], fill(t, d)
	exec(`INSERT INTO dbjobs.runs (id, job_id, number, occurrence, state, held_by, queue, ready_at, created_at)
		SELECT %s, (i - 1) %% %d + 1, %s + 1, %s, 'waiting', 'predecessor', 'nobody', %s, %s FROM NUMBERS`,
		jobs*each, w.id("i"), jobs, w.div("(i - 1)", jobs), w.join("'now:'", w.text("i")), w.at("60"), w.at("60"))
	d.Exec(t, fmt.Sprintf("UPDATE %s SET runs_made = %d", d.Table("plans"), each))
	d.Analyze(t)
}

var runID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)

// A statement about the runs of a job gets few enough ids that each engine looks them up by key: for a list of tens of thousands,
// MySQL and MariaDB read all runs.
func TestManyRunsAreNamedInParts(t *testing.T) {
	t.Parallel()
	const runs, most = 12_000, 5000
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			var calls storetest.Calls
			d := storetest.Open(t, e, store.Options{Wrap: calls.Wrap})
			waitingRuns(t, d, 1, runs)
			calls.Reset()
			if ids, err := d.AbortJob(t.Context(), "job 0", false, store.Author{}); err != nil || len(ids) != runs {
				t.Fatalf("%d runs, %v", len(ids), err)
			}
			ticktest.Run(t, d)
			if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("runs")+" WHERE state = 'cancelled' AND settled_at IS NOT NULL"); n != runs {
				t.Errorf("%d runs are cancelled", n)
			}
			for _, c := range calls.All() {
				text := fmt.Sprint(c.Args)
				if strings.HasPrefix(c.SQL, "INSERT") || strings.Contains(text, `"was":`) {
					continue
				}
				if n := len(runID.FindAllString(text, -1)); n > most {
					t.Errorf("%d ids in %.300s", n, c.SQL)
				}
			}
		})
	}
}

// A pause of many jobs changes all runs that wait for them, in several transactions, none of which has more runs than fit into the
// memory of a small machine. So does its end.
func TestPauseInSeveralTransactions(t *testing.T) {
	t.Parallel()
	const jobs, each, most = 24, 500, 5000
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			written, largest, all := 0, 0, 0 // runs of the transaction under way, of the largest one, and together
			calls := storetest.Calls{After: func(c storetest.Call) error {
				switch c.Kind {
				case storetest.Exec:
					written += strings.Count(fmt.Sprint(c.Args), `"was":`)
				case storetest.Commit, storetest.Rollback:
					largest, all, written = max(largest, written), all+written, 0
				}
				return nil
			}}
			d := storetest.Open(t, e, store.Options{})
			waitingRuns(t, d, jobs, each)
			tk := ticktest.New(t, ticktest.OpenBeside(t, d, "", store.Options{Wrap: calls.Wrap}))
			etl := store.Subject{Scope: store.ScopeTag, Name: "etl"}
			look := func(held int) {
				t.Helper()
				largest, all = 0, 0
				ticktest.Pass(t, tk)
				if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("runs")+" WHERE held_by = 'pause'"); n != held || all != jobs*each || largest > most {
					t.Errorf("%d runs are held, %d were written, at most %d in a transaction", n, all, largest)
				}
			}
			ticktest.Pause(t, d, etl, time.Time{})
			look(jobs * each)
			ticktest.Resume(t, d, etl, false)
			look(0)
		})
	}
}
