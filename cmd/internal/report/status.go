package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
)

// Status is the state of a database: what the command status prints.
type Status struct {
	Now      time.Time          `json:"now"`              // by the clock of the database
	Frozen   *store.Pause       `json:"frozen,omitempty"` // everything is paused
	Triggers []store.Trigger    `json:"triggers"`         // the one that came last first
	Silences []store.Silence    `json:"silences"`         // those that still last, and those that ended within a week
	Running  Executing          `json:"running"`
	Waiting  []WaitingRuns      `json:"waiting"` // the oldest first
	Overdue  Troubled           `json:"overdue"` // the oldest first
	Failing  Troubled           `json:"failing"` // those with the most failures in a row first
	Parked   Troubled           `json:"parked"`
	Paused   Held               `json:"paused"`    // except a freeze
	Coming   []tick.UpcomingRun `json:"next_hour"` // the next time of each job, for the first of these jobs
	ToDo     []string           `json:"to_do"`     // empty: all is well
	// Ahead are jobs that sleep, the last of them until AheadUntil, because the clock of the database was ahead.
	Ahead      int       `json:"ahead_jobs,omitempty"`
	AheadUntil time.Time `json:"ahead_until,omitzero"`
	// PassesHidden says that row security hides the ticks of other logins.
	PassesHidden bool `json:"passes_hidden,omitempty"`

	// What is not in the lists above.
	TriggersMore int  `json:"triggers_more,omitempty"`
	SilencesMore int  `json:"silences_more,omitempty"`
	WaitingMore  int  `json:"waiting_more,omitempty"`   // things for which runs wait
	ComingMore   bool `json:"next_hour_more,omitempty"` // jobs

	triggers    []store.Trigger // all, also those that are not shown
	silences    []store.Silence // all
	waiting     []WaitingRuns   // all
	busy        map[string]bool // queues in which runs execute
	thawed      time.Time       // when the last freeze has ended
	itself      int             // jobs that have paused themselves
	firstItself string          // one of them
	stuck       store.Figures   // the runs that check finds stuck
	calendars   []string        // what is wrong with calendars that schedules use
}

// Executing are the runs under way, the longest first.
type Executing struct {
	Count int         `json:"count"`
	First []store.Run `json:"first"`
}

// WaitingRuns are runs that wait for the same thing, with the name of that thing.
type WaitingRuns struct {
	store.OpenRuns
	Why string `json:"why"`
}

// Troubled are the jobs with one kind of trouble.
type Troubled struct {
	Count int           `json:"count"`
	First []TroubledJob `json:"first"`
}

// TroubledJob is a job that somebody has to look at.
type TroubledJob struct {
	Job      string    `json:"job"`            // owner/name
	Since    time.Time `json:"since,omitzero"` // overdue: its next time, or the end of a freeze after it; failing: its last success
	Failures int       `json:"failures,omitempty"`
	LastAt   time.Time `json:"last_at,omitzero"` // its last run ended then
	Error    string    `json:"error,omitempty"`
}

// Held are the pauses in force, the newest first.
type Held struct {
	Count int           `json:"count"`
	First []store.Pause `json:"first"`
}

// Stand records the jobs.
func (s *Status) Stand(st store.Standing) {
	list := func(k store.Kind, of func(store.JobStatus) TroubledJob) Troubled {
		t := Troubled{Count: k.Count, First: []TroubledJob{}}
		for _, v := range k.First {
			j := of(v)
			j.Job = v.FullName()
			t.First = append(t.First, j)
		}
		return t
	}
	s.Now, s.thawed = st.Now, st.Thawed
	s.Overdue = list(st.Overdue, func(v store.JobStatus) TroubledJob { return TroubledJob{Since: v.OverdueSince()} })
	s.Parked = list(st.Parked, func(v store.JobStatus) TroubledJob { return TroubledJob{Error: v.Parked} })
	s.Coming, s.ComingMore = []tick.UpcomingRun{}, st.ComingMore
	for _, v := range st.Coming {
		s.Coming = append(s.Coming, tick.UpcomingRun{At: v.NextRun, Job: v.FullName()})
	}
	s.Failing = list(st.Failing, func(v store.JobStatus) TroubledJob {
		return TroubledJob{Since: v.LastSuccess, Failures: v.Streak, LastAt: v.LastFinished, Error: v.LastError}
	})
}

// Hold records the pauses. Only the first ones are shown.
func (s *Status) Hold(pauses []store.Pause, limit int) {
	for i := range pauses {
		if pauses[i].Scope == store.ScopeAll {
			s.Frozen = &pauses[i]
		}
	}
	list := slices.DeleteFunc(slices.Clone(pauses), func(p store.Pause) bool { return p.Scope == store.ScopeAll })
	s.Paused = Held{len(list), List(list[:min(limit, len(list))])}
}

// Itself records how many jobs have paused themselves, such as first.
func (s *Status) Itself(jobs int, first string) { s.itself, s.firstItself = jobs, first }

// Stick records the runs that are stuck.
func (s *Status) Stick(f store.Figures) { s.stuck = f }

// AddCalendars looks for calendars that schedules use and that need new days.
func (s *Status) AddCalendars(list []store.Calendar) {
	for i := range list {
		if why := needsDays(&list[i], s.Now); why != "" {
			s.calendars = append(s.calendars, why)
		}
	}
}

// Come records the triggers, the one that came last first. Only the first ones are shown: of many, the one that has died is the
// last.
func (s *Status) Come(triggers []store.Trigger, limit int) {
	shown := min(limit, len(triggers))
	s.Triggers, s.triggers, s.TriggersMore = List(triggers[:shown]), triggers, len(triggers)-shown
}

// Silent records the silences of triggers. Only the first ones are shown; all of those that last are things to do.
func (s *Status) Silent(silences []store.Silence, limit int) {
	shown := min(limit, len(silences))
	s.Silences, s.silences, s.SilencesMore = List(silences[:shown]), silences, len(silences)-shown
}

// Wait records the runs that have not ended. Only the first things for which runs wait are shown; all of them are judged.
func (s *Status) Wait(open []store.OpenRuns, limit int) {
	s.busy = map[string]bool{}
	for _, o := range open {
		if o.State == store.Running {
			s.Running.Count += o.Runs
			s.busy[o.Queue] = true
		} else {
			s.waiting = append(s.waiting, WaitingRuns{o, s.why(o)})
		}
	}
	shown := min(limit, len(s.waiting))
	s.Waiting, s.WaitingMore = List(s.waiting[:shown]), len(s.waiting)-shown
}

// why returns what runs wait for.
func (s *Status) why(o store.OpenRuns) string {
	switch {
	case s.Frozen != nil:
		return "everything is paused"
	case o.State == store.Queued && o.Queue == tick.OwnQueue:
		return "a tick with room"
	case o.State == store.Queued:
		return "a worker of the queue " + o.Queue
	case o.HeldBy == store.HeldByPause:
		return "a pause ends"
	case o.HeldBy == store.HeldByGroup:
		return "the group " + o.Group + " has room"
	case o.HeldBy != "":
		return "an earlier run of the job ends"
	case o.Later && o.Begun:
		return "the next attempt, at " + Instant(o.Ready)
	case o.Later:
		return "its time, at " + Instant(o.Ready)
	}
	return "the next pass"
}

// What check takes for trouble, if it is not told otherwise, is a thing to do here.
const (
	IdleAfter  = 5 * time.Minute  // how old the last pass of a tick may be
	LateAfter  = 15 * time.Minute // how long a job may be due before a tick decides about it
	StuckAfter = time.Hour        // how long a run may wait to be taken or decided
	LongAfter  = 24 * time.Hour   // how long a run may be under way
)

// untaken is how long runs may be ready before somebody has to find out why no process takes them.
const untaken = 5 * time.Minute

// Judge sets what there is to do, the most urgent first. Each problem of check is among it, but for the age of the last
// pass, where passes are on record for longer than that: how old it may be is a flag of check.
func (s *Status) Judge() {
	s.ToDo = []string{}
	do := func(format string, a ...any) { s.ToDo = append(s.ToDo, fmt.Sprintf(format, a...)) }
	if s.Frozen != nil {
		do("everything is paused: dbjobs unfreeze ends that")
	}
	s.judgeRuns(func(string) func(string, ...any) { return do }, s.judgePasses(do, do))
	switch n := s.Parked.Count; {
	case n == 1 && len(s.Parked.First) == 1:
		job := s.Parked.First[0].Job
		do("job %s is parked: dbjobs job show %s says why; correct the definition", job, store.Argument(job))
	case n > 0:
		do("%d jobs are parked: dbjobs job list --state parked shows them, dbjobs job show JOB says why; correct the definitions", n)
	}
	itself := store.Argument(s.firstItself)
	switch {
	case s.itself == 1:
		do("job %s has paused itself: dbjobs errors --job %s shows why, dbjobs job resume %[2]s lets it run again", s.firstItself, itself)
	case s.itself > 1:
		do("%d jobs have paused themselves, such as %s: dbjobs errors --job %s shows why, dbjobs job resume %[3]s lets that one run again", s.itself, s.firstItself, itself)
	}
	switch n := s.Failing.Count; {
	case n == 1 && len(s.Failing.First) == 1 && s.itself == 1 && s.Failing.First[0].Job == s.firstItself: // that is said already
	case n == 1 && len(s.Failing.First) == 1:
		do("job %s is failing: dbjobs errors --job %s shows each failed attempt", s.Failing.First[0].Job, store.Argument(s.Failing.First[0].Job))
	case n > 0:
		do("%d jobs are failing: dbjobs job list --state failing shows them, dbjobs errors --job JOB each failed attempt of one", n)
	}
	s.judgeCalendars(do)
}

// Beside is a thing to do that is not said of a job, a trigger or a silence by itself.
type Beside struct{ Kind, Text string }

// Beside returns what is to do beside what the lists of jobs, triggers and silences show, as Judge says it.
func (s *Status) Beside() (list []Beside) {
	as := func(kind string) func(string, ...any) {
		return func(format string, a ...any) { list = append(list, Beside{kind, fmt.Sprintf(format, a...)}) }
	}
	listed := func(string, ...any) {}
	s.judgeRuns(as, s.judgePasses(listed, as("no tick")))
	s.judgeCalendars(as("calendar"))
	return list
}

// judgePasses reports that ticks do not come as they should, first what lists of triggers and jobs show, too. It returns whether
// they come.
func (s *Status) judgePasses(listed, do func(string, ...any)) (come bool) {
	told := s.judgeTriggers(listed)
	telling := func(say func(string, ...any)) func(string, ...any) {
		return func(format string, a ...any) {
			told = true
			say(format, a...)
		}
	}
	s.judgeOverdue(telling(listed))
	if !told { // otherwise that is said already
		s.judgeIdle(telling(do))
	}
	return !told
}

// judgeRuns reports runs that do not go on, and jobs that sleep. as returns what takes the lines of a kind.
func (s *Status) judgeRuns(as func(kind string) func(string, ...any), come bool) {
	if s.Ahead > 0 {
		as("asleep")("%s", asleep(s.Ahead, s.AheadUntil))
	}
	for _, r := range s.Running.First {
		if !r.LeaseUntil.IsZero() && s.Now.Sub(r.LeaseUntil) > untaken {
			as("process lost")("run %s has lost its process; the next tick queues it again or marks it as lost", r.Label())
		}
	}
	s.judgeStuck(as("stuck"), come)
	s.judgeLong(as("long"))
}

// judgeCalendars reports calendars that need new days.
func (s *Status) judgeCalendars(do func(string, ...any)) {
	if s.Frozen == nil {
		for _, problem := range s.calendars {
			do("%s", problem)
		}
	}
}

// judgeStuck reports runs that are stuck. If judgeQueued says why the first one is, or it is said that ticks do not come as they
// should, that is not said again.
func (s *Status) judgeStuck(do func(string, ...any), come bool) {
	told := s.judgeQueued(do)
	n, job := s.stuck.Stuck, s.stuck.StuckJob
	if n == 0 || s.Frozen != nil || slices.ContainsFunc(told, s.stuck.StuckSince.Equal) || !come && s.Now.Sub(s.lastBegan()) > StuckAfter {
		return
	}
	what, where := "a run has", ""
	if n > 1 {
		what = fmt.Sprintf("%d runs have", n)
	}
	if job != "" {
		where = fmt.Sprintf(", such as one of job %s: dbjobs run list --job %s shows them", job, store.Argument(job))
	}
	do("%s been stuck since %s%s; dbjobs doctor says what to do", what, Instant(s.stuck.StuckSince), where)
}

// judgeLong reports the run that has executed for the longest time, if that is very long.
func (s *Status) judgeLong(do func(string, ...any)) {
	if len(s.Running.First) == 0 {
		return
	}
	if r := &s.Running.First[0]; r.Begun() && s.Now.Sub(r.StartedAt) > LongAfter {
		run := store.Argument(r.Label())
		do("run %s has been under way since %s: dbjobs run show %s shows its steps, dbjobs run cancel %[3]s ends it; a timeout of the job prevents that",
			r.Label(), Instant(r.StartedAt), run)
	}
}

// judgeQueued reports runs that are not taken, in a queue of which none executes. If no tick comes, judgeTriggers says
// that, and not this. A process may have executed others before, such as those of a backlog: then it had too little time. Or it
// is not one of the owner of the job, and may not take them. In a freeze none takes any. It returns since when the first run of
// each queue that it reports is ready.
func (s *Status) judgeQueued(do func(string, ...any)) (told []time.Time) {
	untakenAt := func(w *WaitingRuns, at time.Time) bool {
		return at.Sub(w.Ready) > untaken && at.Sub(s.thawed) > untaken
	}
	var first []WaitingRuns // of each queue, those that are ready first
	for _, w := range s.waiting {
		at := slices.IndexFunc(first, func(f WaitingRuns) bool { return f.Queue == w.Queue })
		switch {
		case w.State != store.Queued || s.Frozen != nil || s.busy[w.Queue] || !untakenAt(&w, s.Now):
		case at < 0:
			first = append(first, w)
		case w.Ready.Before(first[at].Ready):
			first[at] = w
		}
	}
	for _, w := range first {
		switch {
		case w.Queue != tick.OwnQueue:
			do("runs of the queue %s are ready since %s, such as one of job %s, and none executes: start dbjobs work --queue %s, "+
				"let it log in as the owner of the job, or give it more time", w.Queue, Instant(w.Ready), w.Job, store.Argument(w.Queue))
		case len(s.triggers) > 0 && untakenAt(&w, s.lastBegan()):
			do("ticks come and leave runs that are ready since %s, such as one of job %s: "+
				"look at what they print, let one log in as the owner of the job, or give them more time", Instant(w.Ready), w.Job)
		default:
			continue
		}
		told = append(told, w.Ready)
	}
	return told
}
