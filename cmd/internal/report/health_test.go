package report

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
)

// Who is woken by a problem of check reads in status what to do about it, and on the page of report, but for the age of the last pass,
// as Judge says. In a freeze, both leave out what waits on purpose.
func TestStatusNamesWhatCheckFinds(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 4, 0, 0, 0, time.UTC)
	long := store.Run{Job: "hang", Number: 3, StartedAt: now.Add(-LongAfter - time.Hour), LeaseUntil: now.Add(time.Minute)}
	stuck := store.Figures{Stuck: 1, StuckSince: now.Add(-StuckAfter - time.Hour), StuckJob: "a job"}
	ends := []store.Calendar{{Name: "de", Days: []string{"2026-03-02"}, Schedules: 1}, {Name: "idle", Days: []string{"2026-03-02"}}}
	for name, c := range map[string]struct {
		running   []store.Run
		figures   store.Figures
		calendars []store.Calendar
		frozen    bool
		check     []string
		status    []string
	}{
		"a run hangs": {running: []store.Run{long}, check: []string{"run hang#3 has been under way for 25h"},
			status: []string{"run hang#3 has been under way since " + Instant(long.StartedAt) +
				": dbjobs run show 'hang#3' shows its steps, dbjobs run cancel 'hang#3' ends it; a timeout of the job prevents that"}},
		"no pass decides": {figures: stuck, check: []string{"a run of job a job has been stuck for 2h"},
			status: []string{"a run has been stuck since " + Instant(stuck.StuckSince) +
				", such as one of job a job: dbjobs run list --job 'a job' shows them; dbjobs doctor says what to do"}},
		"a calendar ends": {calendars: ends, check: []string{"calendar de: its last day is 2026-03-02; add the days after that"},
			status: []string{"calendar de: its last day is 2026-03-02; add the days after that"}},
		"a freeze": {figures: stuck, calendars: ends, frozen: true, check: []string{},
			status: []string{"everything is paused: dbjobs unfreeze ends that"}},
	} {
		var pauses []store.Pause
		if c.frozen {
			pauses = []store.Pause{{Scope: store.ScopeAll}}
		}
		trigger := store.Trigger{Name: "tick", LastAt: now}
		var h Health
		h.Stand(store.Standing{Now: now}, c.figures, pauses)
		h.AddTrigger(&trigger)
		h.AddCalendars(c.calendars)
		for i := range c.running {
			h.Execute(&c.running[i])
		}
		h.Judge(time.Minute, time.Minute, LongAfter)

		var s Status
		s.Stand(store.Standing{Now: now})
		s.Hold(pauses, 1)
		s.Come([]store.Trigger{trigger}, 1)
		s.Running.First = c.running
		s.Stick(c.figures)
		s.AddCalendars(c.calendars)
		s.Judge()
		if !slices.Equal(h.Problems, c.check) || !slices.Equal(s.ToDo, c.status) {
			t.Errorf("%s: check %q, want %q; status %q, want %q", name, h.Problems, c.check, s.ToDo, c.status)
		}
		page := []string{}
		for _, one := range s.Beside() {
			page = append(page, one.Text)
		}
		if !c.frozen && !slices.Equal(page, c.status) || c.frozen && len(page) > 0 { // a page shows each job that a freeze holds
			t.Errorf("%s: a page has %q beside its jobs, want %q", name, page, c.status)
		}
	}
}

// A trigger that starts no second tick while one executes is silent because of a run that does not end. A run that began
// before, or that a worker has, is no reason.
func TestStatusOfATriggerThatWaits(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 4, 0, 0, 0, time.UTC)
	from := now.Add(-time.Hour)
	run := store.Run{Job: "hang", Number: 3, Queue: tick.OwnQueue, StartedAt: from.Add(time.Minute), LeaseUntil: now.Add(time.Minute)}
	waits := "if the trigger starts no second tick while one executes, it waits for run hang#3: dbjobs run cancel 'hang#3' ends that; else "
	for name, c := range map[string]struct {
		change func(*store.Run)
		waits  bool
	}{
		"it hangs":             {func(*store.Run) {}, true},
		"it began before":      {func(r *store.Run) { r.StartedAt = from.Add(-time.Minute) }, false},
		"a worker has it":      {func(r *store.Run) { r.Queue = "letters" }, false},
		"its process has died": {func(r *store.Run) { r.LeaseUntil = now.Add(-time.Second) }, false},
	} {
		r := run
		c.change(&r)
		s := Status{Now: now, silences: []store.Silence{{Trigger: "cron", From: from}}, Running: Executing{1, []store.Run{r}}}
		s.triggers = []store.Trigger{{Name: "cron", LastAt: from}}
		want := "the trigger cron has been silent since " + Instant(from) + ": "
		if c.waits {
			want += waits
		}
		if s.Judge(); len(s.ToDo) != 1 || !strings.HasPrefix(s.ToDo[0], want+"look at what starts dbjobs tick; ") {
			t.Errorf("%s: %q, want %q", name, s.ToDo, want)
		}
	}
}

// A trigger that never came regularly is never silent. If a job is overdue by so much that check is critical, status names the
// run for which the trigger may wait. A tick that has been under way for some minutes is no trouble.
func TestStatusOfAnOverdueJobBehindARun(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 4, 0, 0, 0, time.UTC)
	last := now.Add(-LateAfter - 2*time.Second)
	run := store.Run{Job: "hang", Number: 3, Queue: tick.OwnQueue, StartedAt: last.Add(2 * time.Second), LeaseUntil: now.Add(time.Minute)}
	waits := "if the trigger starts no second tick while one executes, it waits for run hang#3: dbjobs run cancel 'hang#3' ends that; else "
	for name, c := range map[string]struct {
		triggers []store.Trigger
		hidden   bool
		want     string
	}{
		"a pass is on record": {[]store.Trigger{{Name: "cron", LastAt: last}}, false,
			"job a is overdue, and no pass is on record since " + Instant(last) + ": " + waits + "look at what starts dbjobs tick, and at what it prints"},
		"the first pass":    {nil, false, "no tick has come yet: " + waits + "let cron, or another trigger, start dbjobs tick each minute"},
		"passes are hidden": {nil, true, "job a is overdue: " + waits + "ask who runs the ticks, or start dbjobs tick as this login (with its name as DBJOBS_NAME)"},
	} {
		for late, want := range map[time.Duration][]string{LateAfter: {}, LateAfter + time.Second: {c.want}} {
			s := Status{Now: now, Overdue: Troubled{Count: 1, First: []TroubledJob{{Job: "a", Since: now.Add(-late)}}}, Running: Executing{1, []store.Run{run}}}
			s.triggers, s.PassesHidden = c.triggers, c.hidden
			if s.Judge(); !slices.Equal(s.ToDo, want) {
				t.Errorf("%s, overdue by %s: %q, want %q", name, late, s.ToDo, want)
			}
		}
	}
}

// A first tick that has been under way for that long is trouble for check, too, where nothing is due.
func TestStatusOfAFirstTickThatIsLong(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 4, 0, 0, 0, time.UTC)
	for long, want := range map[time.Duration][]string{
		LateAfter: {},
		LateAfter + time.Second: {"no tick has come yet: if the trigger starts no second tick while one executes, it waits for run hang#3: dbjobs run cancel 'hang#3' ends that; " +
			"else let cron, or another trigger, start dbjobs tick each minute"},
	} {
		s := Status{Now: now, Running: Executing{1, []store.Run{{Job: "hang", Number: 3, Queue: tick.OwnQueue, StartedAt: now.Add(-long), LeaseUntil: now.Add(time.Minute)}}}}
		if s.Judge(); !slices.Equal(s.ToDo, want) {
			t.Errorf("under way for %s: %q, want %q", long, s.ToDo, want)
		}
	}
}

// If the last pass has failed, its error says why jobs are overdue: no other reason is guessed.
func TestStatusAfterAPassThatFailed(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 4, 0, 0, 0, time.UTC)
	s := Status{Now: now, Overdue: Troubled{Count: 1, First: []TroubledJob{{Job: "a", Since: now.Add(-time.Hour)}}}}
	s.triggers = []store.Trigger{{Name: "cron", LastAt: now, Error: "no room"}}
	if s.Judge(); !slices.Equal(s.ToDo, []string{"the last pass of the trigger cron has failed: no room"}) {
		t.Errorf("%q", s.ToDo)
	}
}

// Where check misses a pass, status says so, too, although nothing shows that a trigger comes each minute: somebody has started one pass
// or a few by hand. A trigger that has come as seldom before may come again.
func TestStatusWithoutATrigger(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 4, 0, 0, 0, time.UTC)
	came := func(last, first time.Duration) store.Trigger {
		return store.Trigger{Name: "tick", LastAt: now.Add(-last), First: now.Add(-first)}
	}
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		triggers []store.Trigger
		running  int
		says     bool
	}{
		"one pass":                   {[]store.Trigger{came(10*time.Minute, 10*time.Minute)}, 0, true},
		"one pass just now":          {[]store.Trigger{came(IdleAfter, IdleAfter)}, 0, false},
		"passes on two days":         {[]store.Trigger{came(3*day, 4*day)}, 0, true},
		"once an hour":               {[]store.Trigger{came(50*time.Minute, 5*time.Hour)}, 0, false},
		"another trigger comes":      {[]store.Trigger{came(time.Minute, time.Minute), came(day, day)}, 0, false},
		"a first tick executes":      {[]store.Trigger{came(10*time.Minute, 10*time.Minute)}, 1, false},
		"it has executed for longer": {[]store.Trigger{came(20*time.Minute, 20*time.Minute)}, 1, true},
	} {
		h, s := Health{Now: now}, Status{Now: now}
		for i := range c.triggers {
			h.AddTrigger(&c.triggers[i])
		}
		s.Come(c.triggers, 1)
		s.Running.Count = c.running
		h.Judge(IdleAfter, LateAfter, LongAfter)
		s.Judge()
		said := len(s.ToDo) == 1 && strings.HasPrefix(s.ToDo[0], "no pass is on record since "+Instant(c.triggers[0].LastAt)+": let cron, or another trigger, start dbjobs tick each minute; ")
		page := s.Beside()
		if beside := len(page) == 1 && page[0] == (Beside{"no tick", strings.Join(s.ToDo, "")}); beside != c.says || len(page) > 1 {
			t.Errorf("%s: a page has %q, status %q", name, page, s.ToDo)
		}
		if said != c.says || !said && len(s.ToDo) > 0 || said && h.Level != Critical {
			t.Errorf("%s: status %q, check %q", name, s.ToDo, h.Problems)
		}
	}
}
