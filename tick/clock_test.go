package tick_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/store/storetest/bubble"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/decide"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A database whose clock is a year ahead of the host's clock is refused: none of the year's times are used up.
func TestClockAYearAheadIsRefused(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{ticktest.Grouped("job", "", 0)}})
		ticktest.DecideOnly(t, d)
		right := d.Clock.Now()
		before := ticktest.Told(t, d, "job")
		d.Clock.Set(right.AddDate(1, 0, 0))
		tk := ticktest.New(t, d.Store)
		tk.Now, tk.MaxClockSkew = func() time.Time { return right.Add(time.Minute) }, 10*time.Minute
		r, err := tk.Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), "2027-01-05T08:00:00Z") || !strings.Contains(err.Error(), "nothing was done") || r.Decided != 0 {
			t.Fatalf("%v, %+v", err, r)
		}
		if now := ticktest.Told(t, d, "job"); now != before {
			t.Fatalf("%s, before: %s", now, before)
		}
		// The record that the refused pass made of itself does not show that the clock was ahead when a decision was
		// made.
		d.Clock.Set(right.Add(5 * time.Minute))
		tk.Now = d.Clock.Now
		if r, err := tk.Run(t.Context()); err != nil || r.Made != 1 || r.Ahead != 0 {
			t.Fatalf("put right: %v, %+v", err, r)
		}
		if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("ticks")+" WHERE since > "+ticktest.Literal(d, d.Clock.Now())); n != 0 {
			t.Fatalf("%d records lie ahead", n)
		}
	})
}

// A pass that does not learn in time how many jobs sleep because of such a clock is on record all the same, without an error: it has done
// its work. It says on each engine that it could not count them, and what to do.
func TestPassThatCannotCountWhatSleepsIsOnRecord(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		lock := map[string][]string{"postgres": {"BEGIN", "LOCK TABLE dbjobs.attempts IN ACCESS EXCLUSIVE MODE"}, "mariadb": {"LOCK TABLES dbjobs_attempts WRITE"}}[d.Engine]
		if lock == nil {
			t.Skip("nobody can lock one table of a file: see TestPassThatCannotCountWhatSleepsInAFile")
		}
		ticktest.DecideOnly(t, d)
		conn, err := d.SQL.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for _, statement := range lock {
			if _, err := conn.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		d.Clock.Add(time.Minute)
		cannotCount(t, d)
	})
}

// The same for a file, which is slow here.
func TestPassThatCannotCountWhatSleepsInAFile(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		calls := &storetest.Calls{Before: func(c storetest.Call) error {
			if strings.Contains(c.SQL, "DISTINCT u.job_id") {
				time.Sleep(6 * time.Second)
			}
			return nil
		}}
		d := storetest.Open(t, "sqlite", store.Options{Wrap: calls.Wrap})
		ticktest.DecideOnly(t, d)
		d.Clock.Add(time.Minute)
		cannotCount(t, d)
	})
}

// cannotCount runs a pass after a clock that was ahead, which gets no answer how many jobs sleep. It begins a minute after the last pass.
func cannotCount(t *testing.T, d *storetest.DB) {
	t.Helper()
	now := ticktest.Literal(d, d.Clock.Now())
	d.Exec(t, "UPDATE "+d.Table("ticks")+" SET since = "+ticktest.Literal(d, d.Clock.Now().Add(time.Hour)))
	r, err := ticktest.New(t, d.Store).Run(t.Context())
	if want := "could not be counted in 5s"; err != nil || !strings.Contains(r.AheadUnknown, want) || !strings.Contains(r.AheadUnknown, "dbjobs job replan") || r.CutShort != "" {
		t.Errorf("%v; want %q: %q, cut short: %q", err, want, r.AheadUnknown, r.CutShort)
	}
	if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("ticks")+" WHERE error IS NULL AND last_at = "+now); n != 1 {
		t.Errorf("%d passes are on record", n)
	}
}

// Once nothing sleeps any more, a pass deletes what is on record from that clock. If it cannot, since another session has locked it, it
// says nothing: nobody has to do anything about it, and a later pass tries again.
func TestPassThatCannotForgetAWrongClock(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine == "sqlite" {
			t.Skip("nobody can lock one row of a file: see TestPassThatCannotForgetAWrongClockInAFile")
		}
		since := wrongClock(t, d)
		conn, err := d.SQL.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for _, statement := range []string{"BEGIN", "UPDATE " + d.Table("ticks") + " SET passes = passes + 1 WHERE name = 'another' AND since = " + since} {
			if _, err := conn.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		cannotForget(t, d)
		if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
			t.Fatal(err)
		}
		forgets(t, d)
	})
}

// The same for a file, in which another process writes for a while.
func TestPassThatCannotForgetAWrongClockInAFile(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		slow := true
		calls := &storetest.Calls{Before: func(c storetest.Call) error {
			if slow && strings.HasPrefix(c.SQL, "DELETE FROM dbjobs_ticks") {
				time.Sleep(6 * time.Second)
			}
			return nil
		}}
		d := storetest.Open(t, "sqlite", store.Options{Wrap: calls.Wrap})
		wrongClock(t, d)
		cannotForget(t, d)
		slow = false
		forgets(t, d)
	})
}

// wrongClock makes the records of two triggers those of a clock that was ahead, because of which nothing sleeps. It returns their key.
func wrongClock(t *testing.T, d *storetest.DB) (since string) {
	t.Helper()
	ticktest.DecideOnly(t, d)
	another := ticktest.New(t, d.Store)
	another.Name = "another"
	ticktest.Pass(t, another)
	since = ticktest.Literal(d, d.Clock.Now().Add(time.Hour))
	d.Exec(t, "UPDATE "+d.Table("ticks")+" SET since = "+since)
	d.Clock.Add(time.Minute)
	return since
}

func cannotForget(t *testing.T, d *storetest.DB) {
	t.Helper()
	now := ticktest.Literal(d, d.Clock.Now())
	r, err := ticktest.New(t, d.Store).Run(t.Context())
	if err != nil || r.AheadUnknown != "" || r.Ahead != 0 || r.CutShort != "" || r.Unrecorded != "" {
		t.Errorf("%v: %q; %d; cut short: %q; not on record: %q", err, r.AheadUnknown, r.Ahead, r.CutShort, r.Unrecorded)
	}
	if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("ticks")+" WHERE error IS NULL AND last_at = "+now); n != 1 {
		t.Errorf("%d passes are on record", n)
	}
}

func forgets(t *testing.T, d *storetest.DB) {
	t.Helper()
	d.Clock.Add(time.Minute)
	ticktest.DecideOnly(t, d)
	if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("ticks")+" WHERE since > "+ticktest.Literal(d, d.Clock.Now())); n != 0 {
		t.Errorf("%d records lie ahead", n)
	}
}

// Without that check, a year is decided at once. Its gap is on record with its bounds, every later pass says that the
// job sleeps, and Replan brings the job back. No nominal time runs or is recorded twice.
func TestClockThatWasAYearAhead(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		slow := ticktest.Grouped("slow", "", 0)
		slow.Own = &store.Schedule{Rule: "0 12 1 1 *", Zone: "UTC"}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{ticktest.Grouped("job", "", 0), slow}})
		ticktest.DecideOnly(t, d)
		right := d.Clock.Now()
		d.Clock.Set(right.AddDate(1, 0, 0))
		if r := decideAnd(t, d); r.Made != 2 || r.Gaps[store.Missed] != 1 || r.Ahead != 0 {
			t.Fatalf("ahead: %+v", r)
		}
		d.Clock.Set(right.Add(7 * time.Minute))
		for range 2 {
			if r := decideAnd(t, d); r.Made != 0 || r.Ahead != 2 || !r.AheadUntil.Equal(right.AddDate(1, 0, 0)) {
				t.Fatalf("put right: %+v", r)
			}
		}
		if got := yearly(t, d, "job"); got != "2027-01-05T08:00 queued; missed (2026-01-05T08:00:00, 2027-01-05T07:59:59.999999]; next 2027-01-05T08:05" {
			t.Fatal(got)
		}

		if n, err := d.Replan(t.Context(), "slow", decide.Start, store.Author{By: "ada"}); err != nil || n.Jobs != 1 {
			t.Fatalf("of one: %+v, %v", n, err)
		}
		if r := decideAnd(t, d); r.Ahead != 1 {
			t.Fatalf("one of two: %+v", r)
		}
		if n, err := d.Replan(t.Context(), "", decide.Start, store.Author{By: "ada"}); err != nil || n.Jobs != 1 {
			t.Fatalf("of all: %+v, %v", n, err)
		}
		if n, err := d.Replan(t.Context(), "", decide.Start, store.Author{By: "ada"}); err != nil || n.Jobs != 0 {
			t.Fatalf("again: %+v, %v", n, err)
		}
		if r := decideAnd(t, d); r.Ahead != 0 || r.Made != 0 {
			t.Fatalf("planned anew: %+v", r)
		}
		if got := yearly(t, d, "job"); got != "2027-01-05T08:00 queued; missed (2026-01-05T08:00:00, 2026-01-05T08:07:00]; next 2026-01-05T08:10" {
			t.Fatal(got)
		}
		if got := yearly(t, d, "slow"); got != "2027-01-01T12:00 queued; next 2027-01-01T12:00" {
			t.Fatal(got)
		}
		changes, err := d.JobHistory(t.Context(), "job", 10)
		if err != nil || changes[0].Action != "replan" || changes[0].By != "ada" {
			t.Fatalf("%v, %+v", err, changes)
		}
		d.Exec(t, "UPDATE "+d.Table("runs")+" SET state = 'succeeded'")
		d.Clock.Set(right.Add(10 * time.Minute))
		if r := decideAnd(t, d); r.Made != 1 {
			t.Fatalf("the next: %+v", r)
		}
		// The runs are ordered by created_at, which replan moves to now for an open run.
		if got := yearly(t, d, "job"); !strings.HasPrefix(got, "2027-01-05T08:00 succeeded; 2026-01-05T08:10 queued; missed") {
			t.Fatal(got)
		}
		runs, err := d.Runs(t.Context(), store.RunFilter{Job: "job"})
		if err != nil || !runs[0].IntervalStart.Equal(right.Add(5*time.Minute)) || !runs[0].IntervalEnd.Equal(right.Add(10*time.Minute)) {
			t.Fatalf("%v, %+v", err, runs)
		}
	})
}

// A clock that has run longer than it was ahead leaves no beginning of a stretch in the future, but its last pass is there.
// Each pass says that the jobs sleep, until they do not.
func TestClockThatWasAheadForLong(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{ticktest.Grouped("job", "", 0)}})
		ticktest.DecideOnly(t, d)
		right := d.Clock.Now()
		look := func() int {
			t.Helper()
			triggers, err := d.Triggers(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			n, _, err := d.AheadOf(t.Context(), d.Clock.Now(), triggers)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		for passed := time.Duration(0); passed <= 90*time.Minute; passed += 5 * time.Minute {
			d.Clock.Set(right.Add(time.Hour + passed))
			if r := decideAnd(t, d); r.Ahead != 0 {
				t.Fatalf("ahead: %d jobs sleep", r.Ahead)
			}
		}
		for _, passed := range []int{90, 91, 92, 138, 139} {
			d.Clock.Set(right.Add(time.Duration(passed) * time.Minute))
			if n := look(); n != 1 {
				t.Errorf("put right, before the pass after %d minutes: %d jobs sleep", passed, n)
			}
			if r := decideAnd(t, d); r.Ahead != 1 || r.Made != 0 {
				t.Errorf("put right, the pass after %d minutes: %d jobs sleep, %d runs made", passed, r.Ahead, r.Made)
			}
			if triggers, err := d.Triggers(t.Context()); err != nil || !triggers[0].LastAt.Equal(d.Clock.Now()) {
				t.Errorf("the pass after %d minutes is not on record: %v, %+v", passed, err, triggers)
			}
		}
		if n, err := d.Replan(t.Context(), "", decide.Start, store.Author{}); err != nil || n.Jobs != 1 {
			t.Fatalf("%+v, %v", n, err)
		}
		for range 2 {
			if r := decideAnd(t, d); r.Ahead != 0 {
				t.Errorf("planned anew: %d jobs sleep", r.Ahead)
			}
			d.Clock.Add(time.Minute)
		}
		if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("ticks")+" WHERE since > "+ticktest.Literal(d, d.Clock.Now())); n != 0 || look() != 0 {
			t.Errorf("%d records lie ahead", n)
		}
	})
}

// yearly is reported, with the years.
func yearly(t *testing.T, d *storetest.DB, job string) string {
	t.Helper()
	return ticktest.ToldIn(t, d, job, "2006-01-02T15:04")
}

// decideAnd decides, starts no run, and returns the report.
func decideAnd(t *testing.T, d *storetest.DB) tick.Report {
	t.Helper()
	tk := ticktest.New(t, d.Store)
	tk.Limit = -1
	r := ticktest.Pass(t, tk)
	return r
}

// If a database's clock jumps back, nothing runs again, and the times after the jump are decided once.
func TestClockThatJumpsBack(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		j := ticktest.Grouped("job", "", 0)
		j.Overlap, j.Missed, j.MissedLimit = "wait-all", "all", 10
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
		start := d.Clock.Now()
		for _, minutes := range []int{0, 11, 2, 7, 12, 17} {
			d.Clock.Set(start.Add(time.Duration(minutes) * time.Minute))
			ticktest.DecideOnly(t, d)
		}
		if got := strings.ReplaceAll(ticktest.Told(t, d, "job"), "01-05T", ""); got != "08:05 queued; 08:10 waiting predecessor; 08:15 waiting predecessor; next 08:20" {
			t.Fatal(got)
		}
	})
}

// The packages agree about the first and the last instant.
func TestClockEndsAreThoseOfTheRules(t *testing.T) {
	if !store.First.Equal(rules.First) || !store.Last.Equal(rules.Last) {
		t.Errorf("%v to %v, and %v to %v", store.First, store.Last, rules.First, rules.Last)
	}
}

// A job whose times lie at the end of time is then over, and stops no other job.
func TestClockAtTheEndOfTime(t *testing.T) {
	at := func(text string) time.Time {
		v, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	last := at("9999-12-31T23:59:59Z")
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		steps := []store.Step{ticktest.Nop("")}
		job := func(name, rule string, with store.Job) store.Job {
			with.Name, with.Own, with.Steps = name, &store.Schedule{Rule: rule}, steps
			return with
		}
		far := []store.Job{
			job("not before", "every 5m", store.Job{NotBefore: last}),
			job("start", "every 5m", store.Job{Start: "at 9999-12-31T23:59:59"}),
			job("dtstart", "DTSTART;TZID=America/New_York:99991231T180000\nRRULE:FREQ=HOURLY", store.Job{}),
			job("jitter", "at 9999-12-31T23:59:59Z", store.Job{Jitter: store.Duration(time.Hour)}),
			job("not after", "every 5m", store.Job{NotAfter: last}),
		}
		if _, err := d.Apply(t.Context(), store.Definitions{Jobs: append(far, job("good", "every 5s", store.Job{}))}, store.ApplyOptions{Start: decide.Start}); err != nil {
			t.Fatal(err)
		}
		d.Exec(t, fmt.Sprintf("INSERT INTO %s (name, repeat_after_ms, not_before) VALUES ('again', 3600000, %s)", d.Table("jobs"), ticktest.Literal(d, last)))
		succeeded := 0
		for range 3 {
			d.Clock.Add(10 * time.Second)
			succeeded += ticktest.Run(t, d).Succeeded
		}
		if succeeded < 2 {
			t.Errorf("%d runs of the good job and the others", succeeded)
		}
		jobs, err := d.Jobs(t.Context(), store.JobFilter{})
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range jobs {
			if _, err := json.Marshal(j); err != nil || j.Unreadable != "" || j.NextRun.After(last) || !j.NextRun.IsZero() && j.NextRun.Year() < 2000 {
				t.Errorf("%s: %v: %+v", j.Name, err, j)
			}
			if j.Name != "good" && j.Name != "not after" && j.LastState != "" {
				t.Errorf("%s has run: %+v", j.Name, j)
			}
		}
		for name, j := range map[string]store.Job{
			"not_before": {NotBefore: last.Add(time.Second)}, "not_after": {NotAfter: at("9999-12-31T23:59:59-05:00")}, "year 999": {NotBefore: at("0999-01-01T00:00:00Z")},
		} {
			if _, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{job(name, "every 5m", j)}}, store.ApplyOptions{}); err == nil || !strings.Contains(err.Error(), "9999-12-31T23:59:59Z") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := d.Pause(t.Context(), store.Subject{Scope: store.ScopeJob, Name: "good"}, last.Add(time.Hour), store.Author{}); err == nil || !strings.Contains(err.Error(), "9999-12-31T23:59:59Z") {
			t.Errorf("pause --until: %v", err)
		}
		if _, err := d.RunNow(t.Context(), "good", store.Request{Interval: store.Interval{Start: d.Clock.Now(), End: last.Add(time.Hour)}}); err == nil || !strings.Contains(err.Error(), "9999-12-31T23:59:59Z") {
			t.Errorf("run-now --to: %v", err)
		}
	})
}
