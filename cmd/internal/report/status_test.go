package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
)

// For any number of failing jobs, one line says what to do: the table above it has their names.
func TestStatusOfManyFailingJobs(t *testing.T) {
	t.Parallel()
	var s Status
	s.Running.Count = 1 // a first pass is under way
	s.Failing.First = slices.Grow(s.Failing.First, 2)[:2]
	s.Failing.First[0].Job, s.Failing.First[1].Job = "a", "b"
	for count, want := range map[int]string{
		1: "job a is failing: dbjobs errors --job a shows each failed attempt",
		5: "5 jobs are failing: dbjobs job list --state failing shows them, dbjobs errors --job JOB each failed attempt of one",
	} {
		one := s
		one.Failing.Count = count
		one.Failing.First = s.Failing.First[:min(2, count)]
		if one.Judge(); !slices.Equal(one.ToDo, []string{want}) {
			t.Errorf("%d: %q, want %q", count, one.ToDo, want)
		}
	}
}

// So it is for parked jobs, which one edit of a shared schedule parks together.
func TestStatusOfManyParkedJobs(t *testing.T) {
	t.Parallel()
	var s Status
	s.Running.Count = 1
	s.Parked = Troubled{Count: 3, First: []TroubledJob{{Job: "a"}, {Job: "b"}}}
	want := []string{"3 jobs are parked: dbjobs job list --state parked shows them, dbjobs job show JOB says why; correct the definitions"}
	if s.Judge(); !slices.Equal(s.ToDo, want) {
		t.Errorf("%q, want %q", s.ToDo, want)
	}
}

// A command to type is one that a shell reads as it is meant, whatever the names are.
func TestStatusQuotesNamesInCommands(t *testing.T) {
	t.Parallel()
	s := Status{Now: time.Date(2026, 3, 1, 4, 0, 0, 0, time.UTC)}
	s.Running.Count = 1
	s.waiting = []WaitingRuns{{OpenRuns: store.OpenRuns{State: store.Queued, Queue: "big files", Runs: 1, Ready: s.Now.Add(-time.Hour), Job: "ana/load"}}}
	s.Parked = Troubled{Count: 1, First: []TroubledJob{{Job: "ana/no rule"}}}
	s.Failing = Troubled{Count: 1, First: []TroubledJob{{Job: "it's broken"}}}
	s.Itself(2, "a load")
	want := []string{
		"runs of the queue big files are ready since 2026-03-01T03:00:00Z, such as one of job ana/load, and none executes: " +
			"start dbjobs work --queue 'big files', let it log in as the owner of the job, or give it more time",
		"job ana/no rule is parked: dbjobs job show 'ana/no rule' says why; correct the definition",
		"2 jobs have paused themselves, such as a load: dbjobs errors --job 'a load' shows why, dbjobs job resume 'a load' lets that one run again",
		`job it's broken is failing: dbjobs errors --job 'it'\''s broken' shows each failed attempt`,
	}
	if s.Judge(); !slices.Equal(s.ToDo, want) {
		t.Errorf("%q, want %q", s.ToDo, want)
	}
	s.Itself(1, "a load")
	if s.Judge(); s.ToDo[2] != "job a load has paused itself: dbjobs errors --job 'a load' shows why, dbjobs job resume 'a load' lets it run again" {
		t.Errorf("%q", s.ToDo[2])
	}
}

// An overdue job has a reason: the ticks do not come, or they come and do not serve it. If a line already says that no
// tick comes, there is no second line.
func TestStatusOfAnOverdueJob(t *testing.T) {
	t.Parallel()
	due := time.Date(2026, 3, 1, 4, 0, 0, 0, time.UTC)
	silent := store.Silence{Trigger: "cron", From: due}
	before, after := due.Add(-time.Minute), due.Add(store.OverdueAfter+time.Second)
	none := "job a is overdue, and no pass is on record since "
	for name, c := range map[string]struct {
		last     time.Time
		running  int
		silences []store.Silence
		want     []string
	}{
		"ticks come":            {after, 0, nil, []string{"job a is overdue although ticks come: see dbjobs tick --dry-run, or let a tick log in as its owner"}},
		"no tick comes":         {before, 0, nil, []string{none + Instant(before) + ": look at what starts dbjobs tick, and at what it prints"}},
		"a pass is under way":   {before, 1, nil, []string{}},
		"a trigger is silent":   {before, 0, []store.Silence{silent}, []string{"the trigger cron has been silent since " + Instant(due) + ": look at what starts dbjobs tick; if you have given it up, delete its rows of the table ticks"}},
		"a silence has ended":   {before, 0, []store.Silence{{Trigger: "cron", From: due, Until: after}}, []string{none + Instant(before) + ": look at what starts dbjobs tick, and at what it prints"}},
		"no tick has ever come": {time.Time{}, 0, nil, []string{"no tick has come yet: let cron, or another trigger, start dbjobs tick each minute"}},
	} {
		s := Status{Now: after, silences: c.silences, Overdue: Troubled{Count: 1, First: []TroubledJob{{Job: "a", Since: due}}}}
		s.Running.Count = c.running
		if !c.last.IsZero() {
			s.triggers = []store.Trigger{{Name: "cron", LastAt: c.last}}
		}
		if s.Judge(); !slices.Equal(s.ToDo, c.want) {
			t.Errorf("%s: %q, want %q", name, s.ToDo, c.want)
		}
	}
}

// A trigger that somebody has given up stays silent for as long as its rows are on record. That it is silent says nothing about the
// one that came last: what is wrong with that one is said, too.
func TestStatusBesideATriggerThatWasGivenUp(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 4, 0, 0, 0, time.UTC)
	old, last := now.AddDate(0, 0, -10), now.AddDate(0, 0, -9)
	triggers := []store.Trigger{{Name: "lambda", LastAt: last, First: last}, {Name: "cron", LastAt: old, First: old.Add(-time.Hour)}}
	givenUp := "the trigger cron has been silent since " + Instant(old) + ": look at what starts dbjobs tick; if you have given it up, delete its rows of the table ticks"
	idle := "no pass is on record since " + Instant(last) + ": "
	for name, c := range map[string]struct {
		overdue Troubled
		says    string
	}{
		"a job is overdue": {Troubled{Count: 1, First: []TroubledJob{{Job: "a", Since: now.Add(-time.Hour)}}},
			"job a is overdue, and no pass is on record since " + Instant(last) + ": look at what starts dbjobs tick, and at what it prints"},
		"nothing is due": {Troubled{}, idle + "let cron, or another trigger, start dbjobs tick each minute; for one that comes more seldom, give dbjobs check the flag --last-pass"},
	} {
		s := Status{Now: now, Overdue: c.overdue, silences: []store.Silence{{Trigger: "cron", From: old}}}
		s.Come(triggers, 2)
		if s.Judge(); !slices.Equal(s.ToDo, []string{givenUp, c.says}) {
			t.Errorf("%s: %q, want %q", name, s.ToDo, []string{givenUp, c.says})
		}
	}
}

// A pass that began before a job was due, and ended long after, has not left the job: it did not see it, nor a run that was
// ready later.
func TestStatusAfterALongPass(t *testing.T) {
	t.Parallel()
	due := time.Date(2026, 3, 1, 4, 0, 0, 0, time.UTC)
	end := due.Add(untaken + time.Minute)
	s := Status{Now: end.Add(time.Second), Overdue: Troubled{Count: 1, First: []TroubledJob{{Job: "a", Since: due}}}}
	s.triggers = []store.Trigger{{Name: "cron", LastAt: end, Took: store.Duration(end.Sub(due) + time.Second)}}
	s.Wait([]store.OpenRuns{{State: store.Queued, Queue: "tick", Runs: 1, Ready: due, Job: "b"}}, 1)
	want := []string{"job a is overdue, because the last pass took 6m1s and the job became due meanwhile: the next tick runs it; " +
		"let the trigger start a tick each minute, also while one executes, or give long jobs a queue of their own"}
	if s.Judge(); !slices.Equal(s.ToDo, want) {
		t.Errorf("%q, want %q", s.ToDo, want)
	}
}

// A long pass of one trigger may end after shorter ones of another, which have seen the job, and left it.
func TestStatusAfterALongPassBesideOthers(t *testing.T) {
	t.Parallel()
	due := time.Date(2026, 3, 1, 4, 0, 0, 0, time.UTC)
	now := due.Add(untaken + 3*time.Minute)
	s := Status{Now: now, Overdue: Troubled{Count: 1, First: []TroubledJob{{Job: "a", Since: due}}}}
	s.Come([]store.Trigger{{Name: "cron", LastAt: now, Took: store.Duration(time.Hour)}, {Name: "other", LastAt: now.Add(-time.Minute)}}, 1)
	want := []string{"job a is overdue although ticks come: see dbjobs tick --dry-run, or let a tick log in as its owner"}
	if s.Judge(); !slices.Equal(s.ToDo, want) {
		t.Errorf("%q, want %q", s.ToDo, want)
	}
}

// A run that is stuck in one queue is said, although runs of another queue are not taken. It is not said twice.
func TestStatusOfAStuckRunBesideUntakenOnes(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 4, 0, 0, 0, time.UTC)
	ready := func(queue, job string, ago time.Duration) store.OpenRuns {
		return store.OpenRuns{State: store.Queued, Queue: queue, Runs: 1, Ready: now.Add(-ago), Job: job}
	}
	untaken := "runs of the queue mail are ready since 2026-03-01T0%s:00Z, such as one of job m, and none executes: " +
		"start dbjobs work --queue mail, let it log in as the owner of the job, or give it more time"
	stuck := "a run has been stuck since 2026-03-01T02:00:00Z, such as one of job b: dbjobs run list --job b shows them; dbjobs doctor says what to do"
	for name, c := range map[string]struct {
		open  []store.OpenRuns
		stuck store.Figures
		want  []string
	}{
		"in another queue": {[]store.OpenRuns{{State: store.Running, Queue: "reports", Runs: 1}, ready("reports", "b", 2*time.Hour), ready("mail", "m", 6*time.Minute)},
			store.Figures{Stuck: 1, StuckSince: now.Add(-2 * time.Hour), StuckJob: "b"}, []string{fmt.Sprintf(untaken, "3:54"), stuck}},
		"the same run": {[]store.OpenRuns{{State: store.Running, Queue: "reports", Runs: 1}, ready("mail", "m", 2*time.Hour)},
			store.Figures{Stuck: 1, StuckSince: now.Add(-2 * time.Hour), StuckJob: "m"}, []string{fmt.Sprintf(untaken, "2:00")}},
	} {
		s := Status{Now: now}
		s.Wait(c.open, 10)
		s.Stick(c.stuck)
		if s.Judge(); !slices.Equal(s.ToDo, c.want) {
			t.Errorf("%s: %q, want %q", name, s.ToDo, c.want)
		}
	}
}

// The list of the longest runs is cut, and so is that of what runs wait for. A queue is busy also if its runs are in
// neither, each run that executes counts, and each queue of which nobody takes runs is one thing to do, since its first run is ready.
func TestStatusOfBusyQueues(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 4, 0, 0, 0, time.UTC)
	queued := func(queue string) store.OpenRuns {
		return store.OpenRuns{State: store.Queued, Queue: queue, Runs: 1, Ready: now.Add(-time.Hour), Job: "a"}
	}
	s := Status{Now: now}
	s.Running.First = []store.Run{{Queue: "slow"}}
	again := queued("idle")
	again.Begun, again.Ready = true, now.Add(-2*time.Hour)
	s.Wait([]store.OpenRuns{queued("idle"), {State: store.Running, Queue: "slow", Runs: 1}, queued("mail"), queued("last"), again, {State: store.Running, Queue: "mail", Runs: 3}}, 2)
	said := func(queue string, hour int) string {
		return fmt.Sprintf("runs of the queue %s are ready since 2026-03-01T0%d:00:00Z, such as one of job a, and none executes: "+
			"start dbjobs work --queue %[1]s, let it log in as the owner of the job, or give it more time", queue, hour)
	}
	if s.Judge(); !slices.Equal(s.ToDo, []string{said("idle", 2), said("last", 3)}) || s.Running.Count != 4 || len(s.Waiting) != 2 {
		t.Errorf("%q, %d run, %d wait", s.ToDo, s.Running.Count, len(s.Waiting))
	}
	var out strings.Builder
	if err := s.Print(&out); err != nil || !strings.Contains(out.String(), "\nand 2 more: dbjobs run list --state waiting,queued\n") {
		t.Errorf("%v: the list is cut in silence:\n%s", err, out.String())
	}
}

// A program that reads the JSON learns how many triggers, silences and things for which runs wait are not in it.
func TestStatusCountsWhatItsJSONLeavesOut(t *testing.T) {
	t.Parallel()
	var s Status
	s.Come(make([]store.Trigger, 5), 3)
	s.Silent(make([]store.Silence, 5), 2)
	s.Wait(make([]store.OpenRuns, 5), 1)
	b, err := json.Marshal(s)
	for _, want := range []string{`"triggers_more":2`, `"silences_more":3`, `"waiting_more":4`} {
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%v: there is no %s in %s", err, want, b)
		}
	}
}

// Runs of the queue of ticks that no tick takes have a reason, too: ticks come, and none may execute them. If no tick comes,
// or if one executes others meanwhile, there is no line about them.
func TestStatusOfRunsThatNoTickTakes(t *testing.T) {
	t.Parallel()
	ready := time.Date(2026, 3, 1, 4, 0, 0, 0, time.UTC)
	late := ready.Add(untaken + time.Second)
	want := []string{"ticks come and leave runs that are ready since 2026-03-01T04:00:00Z, such as one of job ann/a: " +
		"look at what they print, let one log in as the owner of the job, or give them more time"}
	queued := store.OpenRuns{State: store.Queued, Queue: "tick", Runs: 2, Ready: ready, Job: "ann/a"}
	for name, c := range map[string]struct {
		now, last time.Time
		open      []store.OpenRuns
		want      []string
	}{
		"ticks come":               {late, late, []store.OpenRuns{queued}, want},
		"they are ready just now":  {late.Add(-time.Minute), late.Add(-time.Minute), []store.OpenRuns{queued}, []string{}},
		"no tick came since":       {late, ready, []store.OpenRuns{queued}, []string{}},
		"a tick executes other":    {late, late, []store.OpenRuns{queued, {State: store.Running, Queue: "tick", Runs: 1}}, []string{}},
		"a worker executes others": {late, late, []store.OpenRuns{queued, {State: store.Running, Queue: "mail", Runs: 1}}, want},
	} {
		s := Status{Now: c.now, triggers: []store.Trigger{{Name: "cron", LastAt: c.last}}}
		s.Wait(c.open, 5)
		if s.Judge(); !slices.Equal(s.ToDo, c.want) {
			t.Errorf("%s: %q, want %q", name, s.ToDo, c.want)
		}
	}
}

// The list of triggers is cut. The last pass of each of them is judged.
func TestStatusOfManyTriggers(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 4, 0, 0, 0, time.UTC)
	s := Status{Now: now}
	s.Come([]store.Trigger{{Name: "a", LastAt: now}, {Name: "b", LastAt: now.Add(-time.Minute), Error: "no room"}}, 1)
	want := "the last pass of the trigger b has failed: no room"
	if s.Judge(); !slices.Equal(s.ToDo, []string{want}) || len(s.Triggers) != 1 {
		t.Errorf("%q, %d triggers", s.ToDo, len(s.Triggers))
	}
}

// The list of silences is cut, and says so. Each silence that lasts is something to do.
func TestStatusOfManySilences(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 4, 0, 0, 0, time.UTC)
	s := Status{Now: now}
	s.Come([]store.Trigger{{Name: "a", LastAt: now}}, 1)
	s.Silent([]store.Silence{{Trigger: "a", From: now.Add(-2 * time.Hour), Until: now}, {Trigger: "b", From: now.Add(-3 * time.Hour)}}, 1)
	s.Judge()
	var out strings.Builder
	if err := s.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"and 1 more: dbjobs status --limit 2\n", "the trigger b has been silent since 2026-03-01T01:00:00Z"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in:\n%s", want, out.String())
		}
	}
}

// The command that shows more is one that status takes.
func TestStatusAdvisesNoLimitThatItRefuses(t *testing.T) {
	for _, limit := range []int{5, MostOfKind} {
		s := Status{Now: time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)}
		s.Silent(make([]store.Silence, 1200), limit)
		var out strings.Builder
		if err := s.Print(&out); err != nil {
			t.Fatal(err)
		}
		want := map[int]string{5: "\nand 1195 more: dbjobs status --limit 1000\n", MostOfKind: "\nand 200 more\n"}[limit]
		if !strings.Contains(out.String(), want) {
			t.Errorf("limit %d: want %q in %s", limit, want, out.String()[max(0, out.Len()-200):])
		}
	}
}

// A run is named as elsewhere: jobs of two owners may have one name.
func TestStatusNamesTheOwnersOfRuns(t *testing.T) {
	t.Parallel()
	s := Status{Now: time.Date(2026, 3, 1, 4, 0, 0, 0, time.UTC)}
	s.Running = Executing{Count: 1, First: []store.Run{{ID: "some-id", Owner: "ana", Job: "load", Number: 7, State: store.Running, LeaseUntil: s.Now.Add(-time.Hour)}}}
	s.Judge()
	var out strings.Builder
	if err := s.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nana/load#7  ", "run ana/load#7 has lost its process"} {
		if !strings.Contains("\n"+out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

// In a freeze nobody takes a run, so just after it nobody has left one: neither a worker, nor the ticks that came meanwhile.
func TestStatusOfRunsThatAFreezeHasHeld(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 4, 0, 0, 0, time.UTC)
	for since, want := range map[time.Duration]int{time.Minute: 0, time.Hour: 2} {
		var s Status
		s.Stand(store.Standing{Now: now, Thawed: now.Add(-since)})
		s.triggers = []store.Trigger{{Name: "cron", LastAt: now}}
		for _, queue := range []string{tick.OwnQueue, "reports"} {
			s.waiting = append(s.waiting, WaitingRuns{OpenRuns: store.OpenRuns{State: store.Queued, Queue: queue, Runs: 1, Ready: now.Add(-3 * time.Hour), Job: "a"}})
		}
		if s.Judge(); len(s.ToDo) != want {
			t.Errorf("%s after a freeze: %q, want %d of these", since, s.ToDo, want)
		}
	}
}
