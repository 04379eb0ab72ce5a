package decide

import (
	"slices"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// testPass is a pass of a host that logs in as somebody.
func testPass(login string) *Pass { return &Pass{Login: login, Heartbeat: 30 * time.Second} }

// Of two hosts with their own logins, the one that cannot run a job looks at it first: it leaves the nominal time alone.
func TestAJobOfOthersStaysDue(t *testing.T) {
	now := time.Date(2026, 1, 5, 2, 0, 0, 0, time.UTC)
	j := store.Job{ID: 1, Name: "job", Owner: "bob", CreatedAt: now.Add(-48 * time.Hour), Steps: []store.Step{{Executor: "sql"}}}
	j.Normalize()
	u := store.Rule{ScheduleID: 1, Linked: true, LinkPlanned: true, LinkedAt: j.CreatedAt, Input: "a", NewInput: "a", Text: "DTSTART:20260101T020000Z\nRRULE:FREQ=DAILY"}
	c := &store.Snapshot{Plan: store.Plan{JobID: 1, NextRun: now, DecidedThrough: now.Add(-24 * time.Hour)}, Job: j, Rules: []store.Rule{u}}
	now = now.Add(time.Second)
	d := Job(now, c, testPass("alice"))
	if d.Plan.Parked != "" || !d.Plan.DecidedThrough.Equal(c.Plan.DecidedThrough) || !d.Plan.NextRun.Equal(c.Plan.NextRun) || len(d.Made)+len(d.Gaps) > 0 {
		t.Fatalf("alice: %+v", d)
	}
	c.Plan = d.Plan
	if d = Job(now, c, testPass("bob")); d.Plan.Parked != "" || len(d.Made) != 1 || !d.Plan.NextRun.After(now) {
		t.Fatalf("bob: %+v", d)
	}
}

// One of two rules cannot be decided, which shows only when the other has made its runs and has replaced what waited.
func TestARuleThatGivesUpHalfWayDecidesNothing(t *testing.T) {
	now := time.Date(2026, 3, 5, 8, 0, 0, 0, time.UTC)
	j := store.Job{ID: 1, Name: "job", Overlap: "replace", Missed: "all", CreatedAt: now.Add(-100 * 24 * time.Hour), Steps: []store.Step{{Executor: "sql"}}}
	j.Normalize()
	rule := func(id int64, text string) store.Rule {
		return store.Rule{ScheduleID: id, Linked: true, LinkPlanned: true, LinkedAt: j.CreatedAt, Input: "a", NewInput: "a", Text: text}
	}
	waiting := store.Run{ID: "1", JobID: 1, Number: 1, Occurrence: "at:2026-03-03T02:00:00.000000Z", State: store.Waiting, HeldBy: "predecessor", ReadyAt: now.Add(time.Hour)}
	c := &store.Snapshot{
		Plan: store.Plan{JobID: 1, NextRun: now.Add(-time.Hour), DecidedThrough: now.Add(-48 * time.Hour), RunsMade: 1}, Job: j, Runs: []store.Run{waiting},
		Rules: []store.Rule{rule(1, "DTSTART:20260101T020000Z\nRRULE:FREQ=DAILY"),
			rule(2, "DTSTART:20260105T080000Z\nRRULE:FREQ=SECONDLY\nEXRULE:FREQ=SECONDLY;BYSETPOS=1;BYMONTH=2,3,4,5,6,7,8,9,10,11,12")},
	}
	d := Job(now, c, testPass(""))
	if d.Plan.Parked == "" || len(d.Made)+len(d.Gaps) > 0 || !d.Plan.DecidedThrough.Equal(c.Plan.DecidedThrough) || d.Plan.RunsMade != 1 {
		t.Errorf("%+v", d)
	}
	if i := slices.IndexFunc(d.Updates, func(m store.RunUpdate) bool { return m.Run.State != store.Waiting }); i >= 0 {
		t.Errorf("what waits is %s", d.Updates[i].Run.State)
	}
	c.Plan, c.Rules = d.Plan, c.Rules[:1]
	if d = Job(now, c, testPass("")); d.Plan.Parked != "" || len(d.Made) != 2 || len(d.Updates) != 1 || d.Updates[0].Run.State != store.Cancelled {
		t.Errorf("mended: %+v", d)
	}
}

// A nominal time that two rules give is missed once.
func TestAMissedTimeOfTwoRulesCountsOnce(t *testing.T) {
	now := time.Date(2026, 1, 8, 8, 0, 0, 0, time.UTC)
	j := store.Job{ID: 1, Name: "job", Missed: store.MissedSkip, CreatedAt: now.Add(-100 * 24 * time.Hour), On: store.Hooks{Missed: "alarm"}, Steps: []store.Step{{Executor: "sql"}}}
	j.Normalize()
	rule := func(id int64, text string) store.Rule {
		return store.Rule{ScheduleID: id, Linked: true, LinkPlanned: true, LinkedAt: j.CreatedAt, Input: "a", NewInput: "a", Text: text}
	}
	d := Job(now, &store.Snapshot{Plan: store.Plan{JobID: 1, DecidedThrough: now.Add(-72 * time.Hour)}, Job: j, Rules: []store.Rule{
		rule(1, "DTSTART:20260101T020000Z\nRRULE:FREQ=DAILY"), rule(2, "DTSTART:20260101T020000Z\nRRULE:FREQ=HOURLY;INTERVAL=12"),
	}}, testPass(""))
	if len(d.Gaps) != 2 || len(d.Events) != 1 || d.Events[0].Kind != store.EventMissed || d.Events[0].Count != 6 {
		t.Errorf("gaps %v, events %+v", d.Gaps, d.Events)
	}
}

// A schedule that is planned again with the same days wakes all of its jobs, also those for which nothing can come.
func TestAJobThatRestsDecidesNothing(t *testing.T) {
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	through := now.Add(-100 * time.Hour)
	open := store.Run{ID: "1", JobID: 1, Number: 1, Occurrence: "now:1", State: store.Running, Fence: 1, HolderAlive: true}
	for name, c := range map[string]struct {
		disabled, stale bool
		maxRuns         int64
		runs            []store.Run
		want            string // the reason of the oldest gap
	}{
		"disabled":           {disabled: true},
		"used up":            {maxRuns: 1},
		"disabled, edited":   {disabled: true, stale: true, want: store.Disabled},
		"used up, edited":    {maxRuns: 1, stale: true, want: store.OverLimit},
		"used up, runs":      {maxRuns: 1, runs: []store.Run{open}},
		"disabled, runs":     {disabled: true, runs: []store.Run{open}},
		"one run is left":    {maxRuns: 2, want: store.Missed},
		"no limit, no cause": {want: store.Missed},
	} {
		j := store.Job{ID: 1, Name: "job", Disabled: c.disabled, MaxRuns: c.maxRuns, CreatedAt: through, Steps: []store.Step{{Executor: "sql"}}}
		j.Normalize()
		daily := store.Rule{ScheduleID: 1, Linked: true, LinkPlanned: true, LinkedAt: j.CreatedAt, Input: "a", NewInput: "a", Text: "DTSTART:20260101T020000Z\nRRULE:FREQ=DAILY"}
		d := Job(now, &store.Snapshot{Plan: store.Plan{JobID: 1, DecidedThrough: through, RunsMade: 1}, Job: j, Stale: c.stale, Rules: []store.Rule{daily}, Runs: c.runs}, testPass(""))
		got := ""
		if len(d.Gaps) > 0 {
			got = d.Gaps[0].Reason
		}
		if rests := d.Plan.DecidedThrough.Equal(through); got != c.want || rests != (c.want == "") {
			t.Errorf("%s: decided through %s, gaps %v", name, d.Plan.DecidedThrough, d.Gaps)
		}
	}
}

// An edit of a calendar in a pause leaves the pause open, unless the new days have times in it from before the edit. The
// plan may not know that decisions after its last record found nothing.
func TestCalendarEditedInAPause(t *testing.T) {
	paused := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		minute string // of each day at which the new rule has a time
		open   bool
	}{"a time before the pause": {"07:50", true}, "a time in the pause, before the edit": {"08:10", false}, "times after the edit": {"08:40", true}} {
		edited, now := paused.Add(20*time.Minute), paused.Add(3*24*time.Hour)
		j := store.Job{ID: 1, Name: "job", CreatedAt: paused.Add(-48 * time.Hour), Steps: []store.Step{{Executor: "sql"}}}
		j.Normalize()
		day := store.Schedule{ID: 1, Rule: "daily at " + c.minute, Zone: "UTC", Calendar: "days", OnHoliday: store.HolidaySkip, CreatedAt: j.CreatedAt}
		r := store.Rule{ScheduleID: 1, Linked: true, LinkPlanned: true, LinkedAt: j.CreatedAt, ChangedAt: edited, Input: "a", NewInput: "b",
			Text: "DTSTART:20260101T120000Z\nRRULE:FREQ=DAILY", Schedule: day, Calendar: &store.Calendar{Name: "days"}}
		plan := store.Plan{JobID: 1, DecidedThrough: paused.Add(-time.Hour), NextRun: paused.Add(4 * time.Hour)}
		d := Job(now, &store.Snapshot{Plan: plan, Job: j, Rules: []store.Rule{r}, Pauses: []store.Pause{{Scope: store.ScopeJob, SubjectID: 1, Since: paused}}}, testPass(""))
		if open := d.Plan.DecidedThrough.Before(paused); open != c.open || open != (len(d.Gaps) == 0) || d.Plan.Parked != "" {
			t.Errorf("%s: decided through %s, gaps %v, parked %q", name, d.Plan.DecidedThrough, d.Gaps, d.Plan.Parked)
		}
	}
}

// A pass that has read the time, and stood still, meets a pause that began meanwhile.
func TestAPauseOnRecordHoldsAlsoBeforeItBegan(t *testing.T) {
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	j := store.Job{ID: 1, Name: "job", CreatedAt: now.Add(-time.Hour), Steps: []store.Step{{Executor: "sql"}}}
	j.Normalize()
	r := store.Run{ID: "1", JobID: 1, Number: 1, Occurrence: "now:1", State: store.Waiting, ReadyAt: now.Add(-time.Second)}
	for want, p := range map[string]store.Pause{
		"pause": {Scope: store.ScopeJob, SubjectID: 1, Since: now.Add(time.Second)},
		"":      {Scope: store.ScopeJob, SubjectID: 1, Since: now.Add(-time.Hour), ResumedAt: now},
	} {
		d := Job(now, &store.Snapshot{Plan: store.Plan{JobID: 1}, Job: j, Runs: []store.Run{r}, Pauses: []store.Pause{p}}, testPass(""))
		if len(d.Updates) != 1 || d.Updates[0].Run.HeldBy != want {
			t.Errorf("want it held by %q: %+v", want, d.Updates)
		}
	}
}

// A run that is retried by hand ends again. It is still one run.
func TestARetriedRunThatFailsAgainCountsOnce(t *testing.T) {
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	j := store.Job{ID: 1, Name: "job", PauseAfterFailures: 2, Steps: []store.Step{{Executor: "sql"}}}
	j.Normalize()
	for name, c := range map[string]struct {
		plan   store.Plan
		state  string
		streak int
		pauses bool
	}{
		"the first failure":             {store.Plan{}, store.Failed, 1, false},
		"again":                         {store.Plan{LastRunID: "1", LastState: store.Failed, Streak: 1}, store.Failed, 1, false},
		"again, now lost":               {store.Plan{LastRunID: "1", LastState: store.Failed, Streak: 1}, store.Lost, 1, false},
		"again, at the limit":           {store.Plan{LastRunID: "1", LastState: store.Lost, Streak: 2}, store.Failed, 2, true},
		"another run failed meanwhile":  {store.Plan{LastRunID: "2", LastState: store.Failed, Streak: 1}, store.Failed, 2, true},
		"another succeeded meanwhile":   {store.Plan{LastRunID: "2", LastState: store.Succeeded}, store.Failed, 1, false},
		"cancelled after other failure": {store.Plan{LastRunID: "1", LastState: store.Cancelled, Streak: 1}, store.Failed, 2, true},
		"the retry succeeds":            {store.Plan{LastRunID: "1", LastState: store.Failed, Streak: 1}, store.Succeeded, 0, false},
	} {
		c.plan.JobID = 1
		r := store.Run{ID: "1", JobID: 1, Number: 1, Occurrence: "now:1", State: c.state, Fence: 2, FinishedAt: now.Add(-time.Second)}
		d := Job(now, &store.Snapshot{Plan: c.plan, Job: j, Runs: []store.Run{r}}, testPass(""))
		if d.Plan.Streak != c.streak || (d.Pause != "") != c.pauses {
			t.Errorf("%s: %d failed in a row, pause %q", name, d.Plan.Streak, d.Pause)
		}
	}
}

// A nominal time at the very end of a job's validity is one of its times.
func TestTheEndOfTheValidityIsIncluded(t *testing.T) {
	now := time.Date(2026, 1, 5, 1, 0, 0, 0, time.UTC)
	due := now.Add(time.Hour)
	for _, c := range []struct{ end, next time.Time }{{due, due}, {due.Add(-time.Microsecond), time.Time{}}} {
		j := store.Job{ID: 1, Name: "job", CreatedAt: now.Add(-time.Hour), NotAfter: c.end, Steps: []store.Step{{Executor: "sql"}}}
		j.Normalize()
		daily := store.Rule{ScheduleID: 1, Linked: true, LinkPlanned: true, LinkedAt: j.CreatedAt, Input: "a", NewInput: "a", Text: "DTSTART:20260101T020000Z\nRRULE:FREQ=DAILY"}
		s := &store.Snapshot{Plan: store.Plan{JobID: 1, DecidedThrough: j.CreatedAt}, Job: j, Rules: []store.Rule{daily}}
		d := Job(now, s, testPass(""))
		if !d.Plan.NextRun.Equal(c.next) {
			t.Errorf("valid until %s: next at %s, want %s", c.end, d.Plan.NextRun, c.next)
		}
		s.Plan = d.Plan
		if made := len(Job(due, s, testPass("")).Made) > 0; made == c.next.IsZero() {
			t.Errorf("valid until %s: a run is made: %t", c.end, made)
		}
	}
}

// The end of a job's validity is moved to a time that is long over. Nominal times from before that edit were promised by the
// old end: each of them is decided.
func TestAnEndOfTheValidityThatIsOverHoldsFromTheEdit(t *testing.T) {
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	day := func(n, hour int) time.Time { return time.Date(2026, 1, n, hour, 0, 0, 0, time.UTC) }
	j := store.Job{ID: 1, Name: "job", Overlap: "wait-all", Missed: "all", CreatedAt: day(1, 8), NotAfter: day(2, 12), Steps: []store.Step{{Executor: "sql"}}}
	j.Normalize()
	daily := store.Rule{ScheduleID: 1, Linked: true, LinkPlanned: true, LinkedAt: j.CreatedAt, Input: "a", NewInput: "a", Text: "DTSTART:20260101T020000Z\nRRULE:FREQ=DAILY"}
	s := &store.Snapshot{Plan: store.Plan{JobID: 1, DecidedThrough: day(1, 8), NextRun: day(2, 2)}, Job: j, Rules: []store.Rule{daily},
		Stale: true, ChangedAt: day(4, 12), Planned: store.PlannedPolicies{Known: true}}
	d := Job(now, s, testPass(""))
	var made []time.Time
	for _, r := range d.Made {
		made = append(made, r.ScheduledFor)
	}
	if want := []time.Time{day(2, 2), day(3, 2), day(4, 2)}; !slices.EqualFunc(made, want, time.Time.Equal) || len(d.Gaps) > 0 {
		t.Errorf("runs for %v, want %v; gaps %v", made, want, d.Gaps)
	}
}

// A run whose jitter is over makes room for the next nominal time only if it begins: where its group is full, it still waits.
func TestJitterThatIsOverInAFullGroup(t *testing.T) {
	now := time.Date(2026, 1, 5, 2, 0, 0, 0, time.UTC)
	j := store.Job{ID: 1, Name: "job", Overlap: "wait", Jitter: store.Duration(time.Hour), CreatedAt: now.Add(-48 * time.Hour), Steps: []store.Step{{Executor: "sql"}}}
	j.Normalize()
	daily := store.Rule{ScheduleID: 1, Linked: true, LinkPlanned: true, LinkedAt: j.CreatedAt, Input: "a", NewInput: "a", Text: "DTSTART:20260101T020000Z\nRRULE:FREQ=DAILY"}
	yesterday := now.Add(-24 * time.Hour)
	waiting := store.Run{ID: "1", JobID: 1, Number: 1, Occurrence: "at:2026-01-04T02:00:00.000000Z", ScheduledFor: yesterday, State: store.Waiting, ReadyAt: now.Add(-time.Second)}
	for made, active := range []int{2, 1} { // of two
		s := &store.Snapshot{Plan: store.Plan{JobID: 1, DecidedThrough: yesterday, NextRun: now, RunsMade: 1}, Job: j, Rules: []store.Rule{daily}, Runs: []store.Run{waiting},
			Group: &store.GroupLoad{Name: "group", MaxRunning: 2, Active: active}}
		if d := Job(now, s, testPass("")); len(d.Made) != made || len(d.Gaps) != 1-made {
			t.Errorf("beside %d of 2 runs of the group, %d runs are made, with the gaps %v", active, len(d.Made), d.Gaps)
		}
	}
}

// Several runs have ended since the last decision. The last of them is the one that ended last, whichever was made first.
func TestTheLastRunIsTheOneThatEndedLast(t *testing.T) {
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	j := store.Job{ID: 1, Name: "job", Overlap: "allow", MaxRunning: 2, Steps: []store.Step{{Executor: "sql"}}}
	j.Normalize()
	slow := store.Run{ID: "1", JobID: 1, Number: 1, Occurrence: "now:1", State: store.Succeeded, Fence: 1, FinishedAt: now.Add(-time.Second)}
	quick := store.Run{ID: "2", JobID: 1, Number: 2, Occurrence: "now:2", State: store.Failed, Fence: 1, FinishedAt: now.Add(-time.Minute)}
	d := Job(now, &store.Snapshot{Plan: store.Plan{JobID: 1, RunsMade: 2}, Job: j, Runs: []store.Run{slow, quick}}, testPass(""))
	if p := d.Plan; p.LastRunID != slow.ID || p.LastState != store.Succeeded || p.Streak != 0 {
		t.Errorf("the last is run %s, %s; %d failed in a row", p.LastRunID, p.LastState, p.Streak)
	}
}

// A job that has lost one of its schedules is looked at each hour. The loss is a change only once: what became due on its other
// schedule since then is neither skipped nor run until the job is repaired.
func TestALostScheduleIsAChangeOnce(t *testing.T) {
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	j := store.Job{ID: 1, Name: "job", CreatedAt: now.Add(-48 * time.Hour), Steps: []store.Step{{Executor: "sql"}}}
	j.Normalize()
	daily := store.Rule{ScheduleID: 1, Linked: true, LinkPlanned: true, LinkedAt: j.CreatedAt, Input: "a", NewInput: "a", Text: "DTSTART:20260101T020000Z\nRRULE:FREQ=DAILY"}
	lost := store.Rule{ScheduleID: 2, LinkPlanned: true, Input: "b", Text: "DTSTART:20260101T030000Z\nRRULE:FREQ=DAILY", Lost: true}
	c := &store.Snapshot{Plan: store.Plan{JobID: 1, DecidedThrough: now.Add(-time.Hour)}, Job: j, Rules: []store.Rule{daily, lost}}
	d := Job(now, c, testPass(""))
	if d.Plan.Parked == "" || !d.Replan || !d.Plan.DecidedThrough.Equal(now) {
		t.Fatalf("parked %q, replan %t, decided through %s", d.Plan.Parked, d.Replan, d.Plan.DecidedThrough)
	}
	lost.Input, lost.Text = "", ""
	c.Plan, c.Rules = d.Plan, []store.Rule{daily, lost}
	d = Job(now.Add(24*time.Hour), c, testPass(""))
	if d.Plan.Parked == "" || d.Replan || len(d.Gaps)+len(d.Made) > 0 || !d.Plan.DecidedThrough.Equal(now) {
		t.Errorf("a day later: parked %q, replan %t, gaps %v, decided through %s", d.Plan.Parked, d.Replan, d.Gaps, d.Plan.DecidedThrough)
	}
}

// A job whose group is missing stays due: its times run as soon as somebody has made the group, not at its next time.
func TestAJobWithoutItsGroupStaysDue(t *testing.T) {
	now := time.Date(2026, 1, 5, 2, 0, 0, 0, time.UTC)
	j := store.Job{ID: 1, Name: "job", Group: "g", CreatedAt: now.Add(-48 * time.Hour), Steps: []store.Step{{Executor: "sql"}}}
	j.Normalize()
	daily := store.Rule{ScheduleID: 1, Linked: true, LinkPlanned: true, LinkedAt: j.CreatedAt, Input: "a", NewInput: "a", Text: "DTSTART:20260101T020000Z\nRRULE:FREQ=DAILY"}
	c := &store.Snapshot{Plan: store.Plan{JobID: 1, NextRun: now, DecidedThrough: now.Add(-24 * time.Hour)}, Job: j, Rules: []store.Rule{daily}, Group: &store.GroupLoad{Name: "g"}}
	d := Job(now, c, testPass(""))
	if d.Plan.Parked == "" || !d.Plan.NextRun.Equal(now) || len(d.Made)+len(d.Gaps) > 0 {
		t.Fatalf("parked %q, next at %s, %d made", d.Plan.Parked, d.Plan.NextRun, len(d.Made))
	}
	c.Plan, c.Group.MaxRunning = d.Plan, 1
	if d = Job(now.Add(time.Hour), c, testPass("")); d.Plan.Parked != "" || len(d.Made) != 1 {
		t.Errorf("repaired: parked %q, %d made", d.Plan.Parked, len(d.Made))
	}
}

// A running run whose row cannot be read stays while its holder lives, whatever its lease says, and takes up a place.
func TestAnUnreadableRunStaysWhileItsHolderLives(t *testing.T) {
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	j := store.Job{ID: 1, Name: "job", Steps: []store.Step{{Executor: "sql"}}}
	j.Normalize()
	for alive, updates := range map[bool]int{true: 0, false: 1} {
		r := store.Run{ID: "1", JobID: 1, Number: 1, Occurrence: "now:1", State: store.Running, Fence: 1, LeaseUntil: now.Add(-time.Hour), HolderAlive: alive, Fault: "priority: no number"}
		d := Job(now, &store.Snapshot{Plan: store.Plan{JobID: 1, RunsMade: 1}, Job: j, Runs: []store.Run{r}}, testPass(""))
		if len(d.Updates) != updates || d.UnderWay != 1-updates {
			t.Errorf("its holder lives: %t: %d under way, %+v", alive, d.UnderWay, d.Updates)
		}
	}
}

func TestARemovedRowOfAParkedJobIsDecidedFor(t *testing.T) {
	d := Job(time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC), &store.Snapshot{Plan: store.Plan{JobID: 1, Parked: "no such rule"}}, testPass("alice"))
	if !d.Plan.NextRun.IsZero() || len(d.Made) > 0 {
		t.Fatalf("%+v", d)
	}
}

func TestACancelRequestIsHeededBeforeTheNextDelivery(t *testing.T) {
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, r := range map[string]store.Run{
		"never delivered": {State: store.Waiting, ReadyAt: ago(time.Minute)},
		"backing off":     {State: store.Waiting, Fence: 1, ReadyAt: now.Add(time.Minute)},
		"queued":          {State: store.Queued, ReadyAt: ago(time.Minute)},
		"holder is gone":  {State: store.Running, Fence: 1, LeaseUntil: ago(time.Hour)},
	} {
		j := store.Job{ID: 1, Name: "job", MaxDeliveries: 3, Steps: []store.Step{{Executor: "sql"}}}
		j.Normalize()
		r.ID, r.JobID, r.Number, r.CancelAt = "1", 1, 1, ago(time.Minute)
		d := Job(now, &store.Snapshot{Plan: store.Plan{JobID: 1}, Job: j, Runs: []store.Run{r}}, testPass(""))
		if len(d.Updates) != 1 || d.Updates[0].Run.State != store.Cancelled || d.Updates[0].From != r.State {
			t.Errorf("%s: %+v", name, d.Updates)
		}
	}
}

// A job that has no time to come slept until the pause of a schedule ended that it had no more, and recorded that its times
// since then were over its limit.
func TestThePauseOfAScheduleTakenAwayWakesNobody(t *testing.T) {
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	for _, linked := range []bool{true, false} {
		c := &store.Snapshot{Plan: store.Plan{JobID: 1, DecidedThrough: now.Add(-time.Hour), RunsMade: 1}, Job: store.Job{ID: 1, Name: "job", MaxRuns: 1}}
		c.Job.Normalize()
		c.Rules = []store.Rule{{ScheduleID: 7, Input: "hourly", NewInput: "hourly", Text: "every 1h", Linked: linked, LinkPlanned: true}}
		c.Pauses = []store.Pause{{Scope: store.ScopeSchedule, SubjectID: 7, Since: now.Add(-time.Minute), Until: now.Add(time.Hour)}}
		d := Job(now, c, testPass(""))
		if want := map[bool]time.Time{true: now.Add(time.Hour)}[linked]; !d.Plan.NextRun.Equal(want) || d.Plan.Parked != "" {
			t.Errorf("linked %t: next at %s, want %s; %s", linked, d.Plan.NextRun, want, d.Plan.Parked)
		}
	}
}

// The calendar takes no time away from a job that has none then, because of not_before or not_after.
func TestHolidaysOutsideOfTheJob(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 12, n, 0, 0, 0, 0, time.UTC) }
	list := []store.Rule{{Linked: true, Schedule: store.Schedule{Name: "daily", Rule: "0 6 * * *", Calendar: "c"},
		Calendar: &store.Calendar{Name: "c", Days: []string{"2026-12-08", "2026-12-25"}}}}
	for _, c := range []struct {
		job  store.Job
		want []string
	}{
		{store.Job{}, []string{"2026-12-08", "2026-12-25"}},
		{store.Job{NotAfter: day(1)}, nil},
		{store.Job{NotBefore: day(8), NotAfter: day(25)}, []string{"2026-12-08"}},
		{store.Job{NotBefore: day(8).Add(6 * time.Hour)}, []string{"2026-12-08", "2026-12-25"}},
		{store.Job{NotBefore: day(9)}, []string{"2026-12-25"}},
	} {
		n, err := NewNominal(&c.job, list)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, h := range n.Holidays(day(5), day(31), 5) {
			got = append(got, h.Day)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("not_before %v, not_after %v: %v, want %v", c.job.NotBefore, c.job.NotAfter, got, c.want)
		}
	}
}

// A schedule is edited in its pause. A run of its old times still waits: the pause holds it.
func TestAnEditOfAPausedScheduleReleasesNoRun(t *testing.T) {
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	j := store.Job{ID: 1, Name: "job", CreatedAt: now.Add(-48 * time.Hour), Steps: []store.Step{{Executor: "sql"}}}
	j.Normalize()
	day := func(id int64, text string) store.Rule {
		return store.Rule{ScheduleID: id, Linked: true, LinkPlanned: true, LinkedAt: j.CreatedAt, Input: "a", NewInput: "a", Text: text}
	}
	at := now.Add(-time.Hour)
	r := store.Run{ID: "1", JobID: 1, Number: 1, Occurrence: store.OccurrenceAt(at), ScheduledFor: at, State: store.Waiting, HeldBy: store.HeldByPause, ReadyAt: at}
	edited := day(1, "DTSTART:20260101T100000Z\nRRULE:FREQ=DAILY")
	for name, c := range map[string]struct {
		list []store.Rule
		want string
	}{
		"all schedules are paused": {[]store.Rule{edited}, store.Waiting},
		"another one is not":       {[]store.Rule{edited, day(2, "DTSTART:20260101T110000Z\nRRULE:FREQ=DAILY")}, store.Queued},
	} {
		d := Job(now, &store.Snapshot{Plan: store.Plan{JobID: 1, DecidedThrough: now.Add(-time.Minute), RunsMade: 1}, Job: j, Rules: c.list, Runs: []store.Run{r},
			Pauses: []store.Pause{{Scope: store.ScopeSchedule, SubjectID: 1, Since: now.Add(-30 * time.Minute)}}}, testPass(""))
		got := store.Waiting
		if len(d.Updates) > 0 {
			got = d.Updates[0].Run.State
		}
		if got != c.want || d.Plan.Parked != "" {
			t.Errorf("%s: the run is %s, want %s (%s)", name, got, c.want, d.Plan.Parked)
		}
	}
}
