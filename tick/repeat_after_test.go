package tick_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/decide"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// course is what happens to a job called job, whose runs a worker takes: for each time, a list of actions.
type course struct {
	*storetest.DB
	held []store.Task
}

// follow does the actions of a text: "08:00 tick take; 08:07 end succeeded".
func (c *course) follow(t *testing.T, text string) {
	t.Helper()
	for part := range strings.SplitSeq(text, ";") {
		words := strings.Fields(part)
		at, err := time.Parse("15:04:05", (words[0] + ":00")[:8])
		if err != nil {
			t.Fatal(err)
		}
		c.Clock.Set(time.Date(2026, 1, 5, at.Hour(), at.Minute(), at.Second(), 0, time.UTC))
		for _, what := range words[1:] {
			c.do(t, what)
		}
	}
}

func (c *course) do(t *testing.T, what string) {
	t.Helper()
	ctx, h := t.Context(), store.Holder{Name: "h", Lease: 10 * time.Hour}
	what, detail, _ := strings.Cut(what, "=")
	on := store.Subject{Scope: store.ScopeJob, Name: "job"}
	var err error
	switch what {
	case "tick":
		ticktest.DecideOnly(t, c.DB)
	case "take":
		var tasks []store.Task
		tasks, err = c.Take(ctx, "another", 10, h)
		c.held = append(c.held, tasks...)
	case "end":
		err = c.EndStep(ctx, &c.held[0], store.StepEnd{State: detail, Final: detail}, h)
		c.held = c.held[1:]
	case "request":
		_, err = c.RunNow(ctx, "job", store.Request{})
	case "pause":
		_, err = c.Pause(ctx, on, time.Time{}, store.Author{})
	case "resume":
		_, err = c.Resume(ctx, on, detail == "missed", store.Author{})
	case "enable":
		err = c.EnableJob(ctx, "job", detail == "true", store.Author{})
	case "sql":
		c.Exec(t, "UPDATE "+c.Table("jobs")+" SET "+strings.ReplaceAll(detail, "_is_", "="))
	case "unpause":
		c.Exec(t, "DELETE FROM "+c.Table("pauses"))
	case "cancel", "retry":
		var runs []store.Run
		if runs, err = c.Runs(ctx, store.RunFilter{Job: "job"}); err == nil && what == "cancel" {
			_, err = c.CancelRun(ctx, runs[0].ID, store.Author{})
		} else if err == nil {
			_, err = c.RetryRun(ctx, runs[0].ID, "", store.Author{})
		}
	default:
		t.Fatalf("what is %q?", what)
	}
	if err != nil {
		t.Fatalf("%s %s: %v", c.Clock.Now(), what, err)
	}
}

// The results of repeat_after with everything that can happen to a job. The job is made at 08:00, and repeats five
// minutes after its end.
var repetitions = []struct {
	name   string
	policy store.Job
	course string
	want   string
}{
	{"success", store.Job{}, "08:00 tick take; 08:01 tick; 08:07 end=succeeded; 08:08 tick; 08:11 tick; 08:12 tick",
		"08:00 succeeded; 08:12 queued; next -"},
	{"failure", store.Job{}, "08:00 tick take; 08:07 end=failed; 08:12 tick take; 08:13 end=failed; 08:14 tick", "08:00 failed; 08:12 failed; next 08:18"},
	{"parts of a second", store.Job{}, "08:00 tick take; 08:00:07 end=succeeded; 08:05:06 tick; 08:05:07 tick", "08:00 succeeded; 08:05 queued; next -"},
	{"cancelled before it began", store.Job{}, "08:00 tick; 08:03 cancel tick", "08:00 cancelled; next 08:08"},
	{"cancelled while it ran", store.Job{}, "08:00 tick take; 08:03 cancel tick; 08:04 end=cancelled tick", "08:00 cancelled; next 08:09"},
	{"lost", store.Job{MaxDeliveries: 1}, "08:00 tick take; 18:01 tick", "08:00 lost; next 18:06"},
	{"the first is late", store.Job{}, "08:20 tick", "08:00 queued; next -"},
	{"late, and the newest is run", store.Job{}, "08:00 tick take; 08:01 end=succeeded; 09:00 tick take; 09:02 end=succeeded tick",
		"08:00 succeeded; 08:06 succeeded; next 09:07"},
	{"late, and skipped", store.Job{Missed: "skip"}, "08:00 tick take; 08:01 end=succeeded tick; 09:00 tick; 09:01 tick",
		"08:00 succeeded; missed (08:01:00, 09:00:00]; next 09:05"},
	{"too old", store.Job{MissedWithin: store.Duration(time.Minute)}, "08:00 tick take; 08:01 end=succeeded tick; 08:08 tick",
		"08:00 succeeded; missed (08:01:00, 08:08:00]; next 08:13"},
	{"paused", store.Job{}, "08:00 tick take; 08:01 end=succeeded tick; 08:02 pause tick; 08:06 tick; 08:30 tick; 08:40 resume; 08:41 tick",
		"08:00 succeeded; paused (08:01:59.999999, 08:39:59.999999]; next 08:46"},
	{"resumed in time", store.Job{}, "08:00 tick take; 08:01 end=succeeded tick; 08:02 pause tick; 08:03 resume tick", "08:00 succeeded; next 08:06"},
	{"resumed with what was missed", store.Job{}, "08:00 tick take; 08:01 end=succeeded tick; 08:02 pause tick; 08:40 resume=missed tick",
		"08:00 succeeded; 08:06 queued; next -"},
	{"paused by a row that is deleted", store.Job{}, "08:00 tick take; 08:01 end=succeeded tick; 08:02 pause tick; 08:07 tick; 08:08 unpause; 08:13 tick",
		"08:00 succeeded; 08:06 queued; next -"},
	{"paused on failure", store.Job{OnError: "pause"}, "08:00 tick take; 08:01 end=failed tick; 08:10 tick; 08:20 resume tick",
		"08:00 failed; paused (08:00:59.999999, 08:19:59.999999]; next 08:25"},
	{"disabled", store.Job{}, "08:00 tick take; 08:01 end=succeeded tick; 08:02 enable=false tick; 08:30 enable=true tick",
		"08:00 succeeded; disabled (08:02:00, 08:30:00]; next 08:35"},
	{"disabled while it runs", store.Job{}, "08:00 tick take; 08:02 enable=false tick; 08:03 end=succeeded tick; 08:30 enable=true tick",
		"08:00 succeeded; disabled (08:02:00, 08:30:00]; next 08:35"},
	{"a request moves it", store.Job{}, "08:00 tick take; 08:01 end=succeeded tick; 08:03 request tick take; 08:04 end=succeeded tick",
		"08:00 succeeded; on request succeeded; next 08:09"},
	{"a request moves it, seen late", store.Job{}, "08:00 tick take; 08:01 end=succeeded tick; 08:03 request tick take; 08:04 end=succeeded; 08:07 tick",
		"08:00 succeeded; on request succeeded; next 08:09"},
	{"a request that is under way waits for nothing", store.Job{}, "08:00 tick take; 08:01 end=succeeded tick; 08:03 request tick take; 08:06 tick; 08:09 end=succeeded tick",
		"08:00 succeeded; on request succeeded; 08:06 queued; next -"},
	{"a request that is under way, overlap skip", store.Job{Overlap: "skip"}, "08:00 tick take; 08:01 end=succeeded tick; 08:03 request tick take; 08:06 tick; 08:09 end=succeeded tick",
		"08:00 succeeded; on request succeeded; overlap (08:05:59.999999, 08:06:00]; next 08:14"},
	{"a request that ends after the time takes it not back", store.Job{}, "08:00 tick take; 08:01 end=succeeded tick; 08:03 request tick take; 08:09 end=succeeded; 08:10 tick",
		"08:00 succeeded; on request succeeded; 08:06 queued; next -"},
	{"tried again", store.Job{}, "08:00 tick take; 08:01 end=failed tick; 08:03 retry tick take; 08:04 end=succeeded tick", "08:00 succeeded; next 08:09"},
	{"max_runs", store.Job{MaxRuns: 2}, "08:00 tick take; 08:01 end=succeeded; 08:06 tick take; 08:07 end=succeeded tick; 09:00 request tick take end=succeeded; 10:00 tick",
		"08:00 succeeded; 08:06 succeeded; on request succeeded; next -"},
	{"more cycles", store.Job{MaxRuns: 1}, "08:00 tick take; 08:01 end=succeeded tick; 09:00 sql=max_runs_is_2 tick", "08:00 succeeded; edited (08:00:00, 09:00:00]; next 09:05"},
	{"not_before", store.Job{NotBefore: ticktest.Morning(8, 30)}, "08:00 tick; 08:29 tick; 08:30 tick take; 08:31 end=succeeded tick", "08:30 succeeded; next 08:36"},
	{"not_before is taken away", store.Job{NotBefore: ticktest.Morning(8, 30)}, "08:00 tick; 08:10 sql=not_before_is_NULL tick", "next 08:15"},
	{"a request before not_before", store.Job{NotBefore: ticktest.Morning(8, 30)}, "08:00 tick; 08:10 request tick take end=succeeded tick", "on request succeeded; next 08:30"},
	{"not_after", store.Job{NotAfter: ticktest.Morning(8, 10)}, "08:00 tick take; 08:01 end=succeeded tick; 08:06 tick take; 08:07 end=succeeded tick; 09:00 tick",
		"08:00 succeeded; 08:06 succeeded; next -"},
	{"longer", store.Job{}, "08:00 tick take; 08:01 end=succeeded tick; 08:03 sql=repeat_after_ms_is_600000 tick", "08:00 succeeded; next 08:11"},
	{"shorter", store.Job{}, "08:00 tick take; 08:01 end=succeeded tick; 08:03 sql=repeat_after_ms_is_60000 tick", "08:00 succeeded; next 08:04"},
	{"longer, when it was owed", store.Job{}, "08:00 tick take; 08:01 end=succeeded tick; 08:08 sql=repeat_after_ms_is_600000 tick",
		"08:00 succeeded; edited (08:01:00, 08:08:00]; next 08:18"},
	{"longer, while it runs", store.Job{}, "08:00 tick take; 08:01 sql=repeat_after_ms_is_600000 tick; 08:02 end=succeeded tick", "08:00 succeeded; next 08:12"},
	{"none, when it was owed", store.Job{}, "08:00 tick take; 08:01 end=succeeded tick; 08:08 sql=repeat_after_ms_is_NULL tick",
		"08:00 succeeded; edited (08:01:00, 08:08:00]; next -"},
	{"none, and again", store.Job{}, "08:00 tick take; 08:01 end=succeeded tick; 08:03 sql=repeat_after_ms_is_NULL tick; 09:00 sql=repeat_after_ms_is_60000 tick",
		"08:00 succeeded; next 09:01"},
	{"parked, and mended", store.Job{}, "08:00 tick take; 08:01 end=succeeded tick; 08:03 sql=missed_grace_ms_is_1 tick; 08:09 tick; 08:10 sql=missed_grace_ms_is_120000 tick",
		"08:00 succeeded; 08:06 queued; next -"},
	{"an edit of something else", store.Job{}, "08:00 tick take; 08:01 end=succeeded tick; 08:03 sql=priority_is_2 tick; 08:07 sql=priority_is_3 tick",
		"08:00 succeeded; 08:06 queued; next -"},
}

// Each course of edits, runs and ends gives the runs and gaps that repeat_after promises.
func TestRepeatAfter(t *testing.T) {
	for i, row := range repetitions {
		t.Run(row.name, func(t *testing.T) {
			storetest.InTurn(t, i, func(t *testing.T, d *storetest.DB) {
				j := row.policy
				j.Name, j.Queue, j.RepeatAfter, j.Steps = "job", "another", store.Duration(5*time.Minute), []store.Step{ticktest.Nop("")}
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
				(&course{DB: d}).follow(t, row.course)
				got := strings.NewReplacer("01-05T", "", "01-01T00:00 ", "on request ", "next 01-01T00:00", "next -").Replace(ticktest.Told(t, d, "job"))
				if got != row.want {
					t.Errorf("\n got %s\nwant %s", got, row.want)
				}
				d.Clock.Add(24 * time.Hour) // each time is decided once, in a run or in a gap, and no pass goes on for ever
				ticktest.DecideOnly(t, d)
				before := ticktest.Told(t, d, "job")
				if ticktest.DecideOnly(t, d); ticktest.Told(t, d, "job") != before {
					t.Errorf("decided again: %s, %s", before, ticktest.Told(t, d, "job"))
				}
			})
		})
	}
}

// The intervals join the times that became runs, whatever lies between them.
func TestRepeatAfterIntervals(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Queue: "another", RepeatAfter: store.Duration(5 * time.Minute), Missed: "skip",
			Steps: []store.Step{ticktest.Nop("")}}}})
		(&course{DB: d}).follow(t, "08:00 tick take; 08:01 end=succeeded tick; 09:00 tick; 09:05 tick take")
		runs, err := d.Runs(t.Context(), store.RunFilter{Job: "job"})
		if err != nil || len(runs) != 2 {
			t.Fatalf("%v: %+v", err, runs)
		}
		if r := runs[1]; !r.IntervalStart.Equal(ticktest.Morning(7, 55)) || !r.IntervalEnd.Equal(ticktest.Morning(8, 0)) {
			t.Errorf("the first: %s to %s", r.IntervalStart, r.IntervalEnd)
		}
		if r := runs[0]; !r.IntervalStart.Equal(ticktest.Morning(8, 0)) || !r.IntervalEnd.Equal(ticktest.Morning(9, 5)) {
			t.Errorf("the next: %s to %s", r.IntervalStart, r.IntervalEnd)
		}
	})
}

// The instant from which repeat_after counts is restored, too. It comes from the end of a run, or from the newest run if
// that is still open.
func TestRepeatAfterAClockThatWasAhead(t *testing.T) {
	for name, ends := range map[string]bool{"the run has ended": true, "the run is open": false} {
		t.Run(name, func(t *testing.T) {
			storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
				right := d.Clock.Now()
				ahead := right.AddDate(1, 0, 0)
				d.Clock.Set(ahead.Add(-time.Hour))
				again := ticktest.Grouped("again", "", 0)
				again.Own, again.RepeatAfter = nil, store.Duration(5*time.Minute)
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{again}})
				end := func() { d.Exec(t, "UPDATE "+d.Table("runs")+" SET state = 'succeeded'") }
				decideAnd(t, d)
				end()
				d.Clock.Set(ahead)
				decideAnd(t, d)
				d.Clock.Set(ahead.Add(10 * time.Minute))
				if r := decideAnd(t, d); r.Made != 1 {
					t.Fatalf("ahead: %+v", r)
				}
				if ends {
					end()
					decideAnd(t, d)
				}
				d.Clock.Set(right)
				if n, err := d.Replan(t.Context(), "", decide.Start, store.Author{By: "ada"}); err != nil || n.Jobs != 1 {
					t.Fatalf("%+v, %v", n, err)
				}
				decideAnd(t, d)
				if !ends {
					d.Clock.Add(time.Minute)
					end()
					decideAnd(t, d)
					right = right.Add(time.Minute)
				}
				if j, err := d.Job(t.Context(), "again"); err != nil || !j.NextRun.Equal(right.Add(5*time.Minute)) {
					t.Fatalf("%v, next run %s: %s", err, j.NextRun, yearly(t, d, "again"))
				}
			})
		})
	}
}

// The last run of a job ended by a clock that was ahead, and the job gets repeat_after in place of its rule. It counts from the
// edit at the latest.
func TestRepeatAfterInPlaceOfARuleAfterAClockThatWasAhead(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		right := d.Clock.Now()
		j := store.Job{Name: "again", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Nop("")}}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
		ticktest.Run(t, d)
		d.Clock.Set(right.AddDate(0, 0, 7))
		ticktest.Request(t, d, "again")
		for range 2 {
			ticktest.Run(t, d)
		}
		d.Clock.Set(right.Add(time.Minute))
		if n, err := d.Replan(t.Context(), "", decide.Start, store.Author{By: "ada"}); err != nil || n.Jobs != 1 {
			t.Fatalf("%+v, %v", n, err)
		}
		ticktest.Run(t, d)
		will, err := d.Job(t.Context(), "again")
		if err != nil {
			t.Fatal(err)
		}
		j.Own, j.RepeatAfter = nil, store.Duration(10*time.Minute)
		will.RepeatAfter = j.RepeatAfter
		want := d.Clock.Now().Add(10 * time.Minute)
		if next := decide.NextRepeat(&will, &store.Job{}, d.Clock.Now()); !next.Equal(want) {
			t.Errorf("the preview says %s, want %s", next, want)
		}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
		ticktest.Run(t, d)
		if v, err := d.Job(t.Context(), "again"); err != nil || !v.NextRun.Equal(want) {
			t.Errorf("%v, next run %s, want %s", err, v.NextRun, want)
		}
	})
}

// What a preview of an edit says of the next time is what the next pass then finds: see decide.NextRepeat.
func TestRepeatAfterBeforeAndAfterAnEdit(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		steps := []store.Step{ticktest.Nop("")}
		rule := ticktest.EveryFiveMinutes()
		jobs := func(again time.Duration, own *store.Schedule) []store.Job {
			return []store.Job{{Name: "again", Steps: steps, RepeatAfter: store.Duration(again), Own: own}}
		}
		status := func() store.JobStatus {
			t.Helper()
			v, err := d.Job(t.Context(), "again")
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		first := jobs(10*time.Minute, nil)
		ticktest.Apply(t, d, store.Definitions{Jobs: first})
		fresh := status()
		if next := decide.NextRepeat(&fresh, &fresh.Job, d.Clock.Now()); !next.Equal(d.Clock.Now()) {
			t.Errorf("a new job is due at once, not at %s", next)
		}
		for name, edits := range map[string][]store.Job{
			"longer":                     jobs(30*time.Minute, nil),
			"shorter":                    jobs(time.Minute, nil),
			"longer, and longer again":   append(jobs(20*time.Minute, nil), jobs(40*time.Minute, nil)[0]),
			"a rule, and no more":        append(jobs(0, rule), jobs(20*time.Minute, nil)[0]),
			"again what it was":          jobs(10*time.Minute, nil),
			"due, and then not any more": jobs(2*time.Minute, nil),
		} {
			ticktest.Apply(t, d, store.Definitions{Jobs: first})
			ticktest.Run(t, d)
			d.Clock.Add(10 * time.Minute)
			ticktest.Run(t, d)
			d.Clock.Add(4 * time.Minute)
			var want time.Time
			for _, to := range edits {
				is := status()
				will := is
				will.RepeatAfter = to.RepeatAfter
				want = decide.NextRepeat(&will, &is.Job, d.Clock.Now())
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{to}})
			}
			ticktest.Run(t, d)
			if is := status(); !is.NextRun.Equal(want) {
				t.Errorf("%s: the preview said %s, and the next pass says %s", name, want, is.NextRun)
			}
		}
	})
}
