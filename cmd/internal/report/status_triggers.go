package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
)

// underWay reports whether a pass may be under way that explains why something has waited since an instant: a pass is recorded when
// it ends. After LateAfter it explains that no more, since check counts what is late by then.
func (s *Status) underWay(since time.Time) bool {
	return s.Running.Count > 0 && s.Now.Sub(since) <= LateAfter
}

// judgeOverdue says why the oldest overdue job has not run. It says nothing if no tick has ever come, if the trigger that came last
// is silent, or if the last pass has failed: judgeTriggers says that.
func (s *Status) judgeOverdue(do func(string, ...any)) {
	if len(s.Overdue.First) == 0 || s.Frozen != nil || len(s.triggers) > 0 && s.triggers[0].Error != "" {
		return
	}
	first, last := s.Overdue.First[0], time.Time{}
	if len(s.triggers) > 0 {
		last = s.triggers[0].LastAt
	} else if !s.PassesHidden {
		return
	}
	switch late := first.Since.Add(store.OverdueAfter); {
	case s.lastBegan().After(late):
		do("job %s is overdue although ticks come: see dbjobs tick --dry-run, or let a tick log in as its owner", first.Job)
	case last.After(late):
		do("job %s is overdue, because the last pass took %s and the job became due meanwhile: the next tick runs it; "+
			"let the trigger start a tick each minute, also while one executes, or give long jobs a queue of their own", first.Job, took(s.triggers[0].Took))
	case slices.ContainsFunc(s.lasting(), func(v store.Silence) bool { return !v.From.Before(last) }):
	case s.underWay(first.Since):
	case s.PassesHidden:
		do("job %s is overdue: %sask who runs the ticks, or start dbjobs tick as this login (with its name as DBJOBS_NAME)", first.Job, s.waitsSince(last))
	default:
		do("job %s is overdue, and no pass is on record since %s: %slook at what starts dbjobs tick, and at what it prints", first.Job, Instant(last), s.waitsSince(last))
	}
}

// judgeIdle reports that no tick comes, where that is no silence of a trigger: somebody has started a pass or a few by
// hand, or has given up the trigger since. It does not know how seldom a trigger comes: where passes are on record for longer
// than the last one is away, it is silent.
func (s *Status) judgeIdle(do func(string, ...any)) {
	var last, first time.Time
	for _, t := range s.triggers {
		if !t.LastAt.After(s.Now) && t.LastAt.After(last) {
			last = t.LastAt
		}
		if first.IsZero() || t.First.Before(first) {
			first = t.First
		}
	}
	if s.PassesHidden { // other passes decide, too
		return
	}
	away := s.Now.Sub(last)
	if last.IsZero() || away <= IdleAfter || away <= last.Sub(first) || s.underWay(last) {
		return
	}
	do("no pass is on record since %s: %slet cron, or another trigger, start dbjobs tick each minute; for one that comes more seldom, give dbjobs check the flag --last-pass",
		Instant(last), s.waitsSince(last))
}

// lastBegan is when the latest of the last passes of the triggers began. What became due later was not yet to be seen by any.
func (s *Status) lastBegan() (latest time.Time) {
	for _, t := range s.triggers {
		if began := t.LastAt.Add(-time.Duration(t.Took)); began.After(latest) {
			latest = began
		}
	}
	return latest
}

// judgeTriggers reports triggers that are silent, and reports if no trigger has come at all. It returns whether it has said
// something of the trigger that came last: one that was given up before says nothing about that.
func (s *Status) judgeTriggers(do func(string, ...any)) (told bool) {
	var last time.Time
	if len(s.triggers) > 0 {
		last = s.triggers[0].LastAt
	} else if !s.PassesHidden && !s.underWay(s.begun()) {
		told = true
		do("no tick has come yet: %slet cron, or another trigger, start dbjobs tick each minute", s.waitsSince(last))
	}
	for _, v := range s.lasting() {
		do("the trigger %s has been silent since %s: %slook at what starts dbjobs tick; if you have given it up, delete its rows of the table ticks",
			v.Trigger, Instant(v.From), s.waitsSince(v.From))
		told = told || !v.From.Before(last)
	}
	for _, t := range s.triggers {
		if t.LastAt.Sub(s.Now) > untaken {
			do("the trigger %s has not come since the clock of the database was set back: look at what starts dbjobs tick", t.Name)
			told = true
		}
		if t.Error != "" {
			do("the last pass of the trigger %s has failed: %s", t.Name, t.Error)
			told = told || !t.LastAt.Before(last)
		}
	}
	return told
}

// lasting returns the silences that last and are something to do. To a login that does not see the ticks of others, a silence of
// its own trigger says nothing: others may serve its jobs by now, and these jobs tell whether they do.
func (s *Status) lasting() (list []store.Silence) {
	if s.PassesHidden {
		return nil
	}
	for _, v := range s.silences {
		if v.Until.IsZero() {
			list = append(list, v)
		}
	}
	return list
}

// begun is since when the run that has executed for the longest time, or the oldest overdue job, shows that a first pass is under
// way or is missing.
func (s *Status) begun() time.Time {
	since := s.Now
	if len(s.Running.First) > 0 && s.Running.First[0].Begun() {
		since = s.Running.First[0].StartedAt
	}
	if len(s.Overdue.First) > 0 && s.Overdue.First[0].Since.Before(since) {
		since = s.Overdue.First[0].Since
	}
	return since
}

// waitsSince names a run that a tick has started since the last pass on record, and that still executes: a pass is on record only
// when it has ended. Empty: there is none.
func (s *Status) waitsSince(last time.Time) string {
	for i := range s.Running.First {
		if r := &s.Running.First[i]; r.Queue == tick.OwnQueue && r.StartedAt.After(last) && !r.LeaseUntil.Before(s.Now) {
			return fmt.Sprintf("if the trigger starts no second tick while one executes, it waits for run %s: dbjobs run cancel %s ends that; else ",
				r.Label(), store.Argument(r.Label()))
		}
	}
	return ""
}
