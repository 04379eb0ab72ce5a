package tick_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/decide"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

const century = 101 * 365 * 24 * time.Hour

// refusals are the rules that policies have to keep: an edit of a job of "every 5m" by plain SQL, what mends it, and the
// same edit of the definition, where a definition can say it. Where an engine's own checks refuse the statement, that is
// all that is wanted.
var refusals = []struct {
	set, mend string
	change    func(*store.Job)
}{
	{"queue = 'a/b'", "queue = 'another'", func(j *store.Job) { j.Queue = "a/b" }},
	{"queue = ''", "queue = 'another'", nil}, // the default of a definition
	{"group_name = ' g'", "group_name = NULL", func(j *store.Job) { j.Group = " g" }},
	{"group_name = 'nowhere'", "group_name = NULL", func(j *store.Job) { j.Group = "nowhere" }},
	{"overlap = 'never'", "overlap = 'wait'", func(j *store.Job) { j.Overlap = "never" }},
	{"max_running = 0", "max_running = 1", nil},
	{"max_running = 2", "max_running = 1", func(j *store.Job) { j.MaxRunning = 2 }},
	{"missed = 'none'", "missed = 'latest'", func(j *store.Job) { j.Missed = "none" }},
	{"missed_limit = -1", "missed_limit = 100", func(j *store.Job) { j.MissedLimit = -1 }},
	{"missed_limit = 7", "missed_limit = 100", func(j *store.Job) { j.MissedLimit = 7 }},
	{"missed_within_ms = 3185136000000", "missed_within_ms = NULL", func(j *store.Job) { j.MissedWithin = store.Duration(century) }},
	{"missed_within_ms = -1", "missed_within_ms = NULL", nil},
	{"missed_grace_ms = 1000", "missed_grace_ms = 120000", func(j *store.Job) { j.MissedGrace = store.Duration(time.Second) }},
	{"missed = 'skip', missed_grace_ms = 3185136000000", "missed = 'latest', missed_grace_ms = 120000", func(j *store.Job) { j.Missed, j.MissedGrace = "skip", store.Duration(century) }},
	{"missed_grace_ms = -1", "missed_grace_ms = 120000", nil},
	{"retry_attempts = -1", "retry_attempts = 1", nil},
	{"retry_backoff_ms = 3185136000000", "retry_backoff_ms = 10000", func(j *store.Job) { v := store.Duration(century); j.Retry.Backoff = &v }},
	{"retry_max_backoff_ms = 3185136000000", "retry_max_backoff_ms = 3600000", func(j *store.Job) { v := store.Duration(century); j.Retry.MaxBackoff = &v }},
	{"retry_max_backoff_ms = 1000", "retry_max_backoff_ms = 3600000", func(j *store.Job) { v := store.Duration(time.Second); j.Retry.MaxBackoff = &v }},
	{"retry_jitter = 101", "retry_jitter = 10", func(j *store.Job) { v := 101; j.Retry.Jitter = &v }},
	{"max_deliveries = -1", "max_deliveries = 3", func(j *store.Job) { j.MaxDeliveries = -1 }},
	{"on_error = 'stop'", "on_error = 'continue'", func(j *store.Job) { j.OnError = "stop" }},
	{"pause_after_failures = -1", "pause_after_failures = NULL", func(j *store.Job) { j.PauseAfterFailures = -1 }},
	{"on_error = 'pause', pause_after_failures = 3", "on_error = 'continue', pause_after_failures = NULL", func(j *store.Job) { j.OnError, j.PauseAfterFailures = "pause", 3 }},
	{"timeout_ms = 3185136000000", "timeout_ms = NULL", func(j *store.Job) { j.Timeout = store.Duration(century) }},
	{"jitter_ms = 3185136000000", "jitter_ms = 0", func(j *store.Job) { j.Jitter = store.Duration(century) }},
	{"max_runs = -1", "max_runs = NULL", func(j *store.Job) { j.MaxRuns = -1 }},
	{"not_before = @later, not_after = @now", "not_before = NULL, not_after = NULL", func(j *store.Job) { j.NotBefore, j.NotAfter = ticktest.Morning(9, 0), ticktest.Morning(8, 45) }},
	{"start_rule = 'sometime'", "start_rule = NULL", nil}, // a manifest tries it
	{"start_rule = 'D 17:30', start_zone = 'Nowhere/Land'", "start_rule = NULL, start_zone = NULL", nil},
	{"start_rule = 'at 2020-01-01T00:00:00Z'", "start_rule = NULL", func(j *store.Job) { j.Start = "at 2020-01-01T00:00:00Z" }},
	{"start_rule = 'D 17:30', start_zone = 'UTC', not_after = @now", "start_rule = NULL, start_zone = NULL, not_after = NULL", func(j *store.Job) { j.Start, j.NotAfter = "D 17:30", ticktest.Morning(8, 45) }},
	{"start_zone = 'UTC'", "start_zone = NULL", func(j *store.Job) { j.StartZone = "UTC" }},
	{"repeat_after_ms = 1000", "repeat_after_ms = NULL", func(j *store.Job) { j.RepeatAfter = store.Duration(time.Second) }},
	{"repeat_after_ms = 3185136000000", "repeat_after_ms = NULL", func(j *store.Job) { j.RepeatAfter = store.Duration(century) }},
	{"repeat_after_ms = 1000, retry_attempts = 0", "repeat_after_ms = NULL, retry_attempts = 1", func(j *store.Job) {
		until := store.Attempts(0)
		j.RepeatAfter, j.Retry.Attempts = store.Duration(time.Second), &until
	}},
	{"keep_runs = -1", "keep_runs = 1000", func(j *store.Job) { j.Keep.Runs = -1 }},
	{"keep_age_ms = 3185136000000", "keep_age_ms = 7776000000", func(j *store.Job) { j.Keep.Age = store.Duration(century) }},
	{"remove_when_done = true, on_startup = true", "remove_when_done = false", func(j *store.Job) { j.RemoveDone, j.OnStartup = true, true }},
	{"remove_when_done = true, after_job_id = 1", "remove_when_done = false", func(j *store.Job) { j.RemoveDone, j.After = true, "good" }},
	{"after_job_id = id", "after_job_id = NULL", nil},
	{`tags = '["a/b"]'`, "tags = '[]'", func(j *store.Job) { j.Tags = []string{"a/b"} }},
	{"tags = '3'", "tags = '[]'", nil},
}

// Each rule is refused by apply with a message; the row that plain SQL makes so parks that job alone, with the same one, and
// mended it comes back.
func TestARowThatIsRefusedParksItsJob(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		base := func(i int) store.Job {
			return store.Job{Name: fmt.Sprintf("job %d", i), Queue: "another", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Step("", "SELECT 1")}}
		}
		good := base(0)
		good.Name = "good"
		defs := store.Definitions{Jobs: []store.Job{good}}
		for i := range refusals {
			defs.Jobs = append(defs.Jobs, base(i))
		}
		ticktest.Apply(t, d, defs)
		ticktest.DecideOnly(t, d)
		want, refused := map[string]string{}, 0
		for i, r := range refusals {
			j := base(i)
			if r.change != nil {
				r.change(&j)
				_, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{j}}, store.ApplyOptions{DryRun: true, Start: decide.Start})
				if err == nil {
					t.Errorf("%s: apply takes it", r.set)
					continue
				}
				want[j.Name] = err.Error()
			}
			set := strings.NewReplacer("@now", ticktest.Literal(d, ticktest.Morning(8, 45)), "@later", ticktest.Literal(d, ticktest.Morning(9, 0))).Replace(r.set)
			if _, err := d.SQL.Exec("UPDATE " + d.Table("jobs") + " SET " + set + " WHERE name = '" + j.Name + "'"); err != nil {
				refused++
				delete(want, j.Name)
				continue
			}
			if want[j.Name] == "" {
				want[j.Name] = "…"
			}
		}
		if refused > len(refusals)/2 {
			t.Errorf("%d of %d statements were refused by the engine", refused, len(refusals))
		}
		d.Clock.Set(ticktest.Morning(8, 5))
		ticktest.DecideOnly(t, d)
		jobs, err := d.Jobs(t.Context(), store.JobFilter{})
		if err != nil || len(jobs) != len(refusals)+1 {
			t.Fatalf("%v: %d jobs", err, len(jobs))
		}
		for _, j := range jobs {
			w, parked := want[j.Name]
			switch {
			case parked && (j.Parked == "" || w != "…" && j.Parked != w):
				t.Errorf("%s: parked because of %q, want %q", j.Name, j.Parked, w)
			case !parked && (j.Parked != "" || j.RunsMade != 1):
				t.Errorf("%s, with which nothing is wrong: %q, %d runs", j.Name, j.Parked, j.RunsMade)
			case parked && j.RunsMade != 0:
				t.Errorf("%s ran all the same", j.Name)
			}
		}
		for i, r := range refusals {
			if want[base(i).Name] != "" {
				d.Exec(t, "UPDATE "+d.Table("jobs")+" SET "+r.mend+" WHERE name = '"+base(i).Name+"'")
			}
		}
		for _, minute := range []int{6, 10} { // the validity that a row had is that of what was due meanwhile
			d.Clock.Set(ticktest.Morning(8, minute))
			ticktest.DecideOnly(t, d)
		}
		if jobs, err = d.Jobs(t.Context(), store.JobFilter{}); err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(jobs, func(j store.JobStatus) bool { return j.Parked != "" || j.RunsMade == 0 }); i >= 0 {
			t.Errorf("mended: %s: %q, %d runs", jobs[i].Name, jobs[i].Parked, jobs[i].RunsMade)
		}
	})
}
