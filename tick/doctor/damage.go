package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// damage has the words for a kind of damage.
type damage struct {
	level   Level
	problem func(d *store.Damage) string
	advice  string
}

// damages are the kinds of damage that the store looks for.
var damages = map[string]damage{
	"twice": {Wrong, func(d *store.Damage) string {
		return fmt.Sprintf("its nominal time %s has %d runs", instant(d.At), d.Count)
	}, "look at both with dbjobs run list: if both were executed, the work was done more than once"},
	"numbers": {Warning, func(d *store.Damage) string {
		return fmt.Sprintf("it has runs with higher numbers than its plan has counted (%d), so the next ones may repeat numbers", d.Count)
	}, "the row in plans is older than the runs, as after restoring one table; the first pass of an hour brings it up to them"},
	"older": {Warning, func(d *store.Damage) string {
		return fmt.Sprintf("it has runs that are older than the job: %d, the first made at %s", d.Count, instant(d.At))
	}, "another job had its number before the rows of jobs were deleted and numbers began anew, as after TRUNCATE, or the clock was ahead when the job was made; look at these runs with dbjobs run list: if they are another job's, the count of its runs has them, too, so raise its max_runs, if it has one, by as many; if they are its own, there is nothing to do"},
	"attempts": {Warning, func(d *store.Damage) string {
		return fmt.Sprintf("attempts of runs that are gone or do not know them: %d, such as of the run %s", d.Count, d.What)
	}, "rows were deleted or changed by hand; delete these rows of attempts"},
	"runs": {Wrong, func(d *store.Damage) string {
		return fmt.Sprintf("runs that are %s: %d, the first made at %s", d.What, d.Count, instant(d.At))
	}, "rows were changed by hand; end those that have not ended with dbjobs run cancel, and put the others right by SQL"},
	"clock-back": {Warning, func(d *store.Damage) string {
		return fmt.Sprintf("runs that are %s: %d, the first made at %s", d.What, d.Count, instant(d.At))
	}, "the clock of the database went back meanwhile, or rows were changed by hand; if it was ahead, run dbjobs job replan; no run is executed again because of this"},
	"gaps": {Warning, func(d *store.Damage) string {
		return fmt.Sprintf("gaps that end before they begin: %d", d.Count)
	}, "rows were changed by hand; delete them from gaps"},
	"stuck": {Wrong, func(d *store.Damage) string {
		return fmt.Sprintf("runs that are %s wait for a decision that no pass has made: %d, the first since %s", d.What, d.Count, instant(d.At))
	}, "look at the errors that dbjobs tick prints; another session may have locked the rows"},
	"queued": {Warning, func(d *store.Damage) string {
		return fmt.Sprintf("runs of the queue %s are ready, and not taken: %d, the first since %s", d.What, d.Count, instant(d.At))
	}, "start a worker of this queue, or for the queue tick, ticks: more, longer ones, or with the login of the owner of the jobs"},
	"unplanned": {Wrong, func(d *store.Damage) string {
		return fmt.Sprintf("no pass has planned it since it was made at %s", instant(d.At))
	}, "look at the errors that dbjobs tick prints; the ticks may have another database, or none of them logs in as the owner of the job"},
	"orphans": {Warning, func(d *store.Damage) string {
		return fmt.Sprintf("rows in %s of a job whose row is gone: %d", d.What, d.Count)
	}, "the job was deleted by SQL instead of by dbjobs job remove; delete these rows when you do not need its history"},
	"links": {Wrong, func(d *store.Damage) string {
		return fmt.Sprintf("schedules that it uses and that are gone: %d", d.Count)
	}, "apply the file that has the schedule, or delete the row in job_schedules"},
	"after": {Wrong, func(d *store.Damage) string {
		return fmt.Sprintf("jobs that it runs after and that are gone: %d", d.Count)
	}, "make the job again, or delete the row in job_after"},
	"groups": {Wrong, func(d *store.Damage) string {
		return fmt.Sprintf("its group %s is gone", d.What)
	}, "apply the file that has the group, or insert its row into groups"},
	"calendars": {Wrong, func(d *store.Damage) string {
		return fmt.Sprintf("the calendar %s is gone, and schedules name it: %d", d.What, d.Count)
	}, "apply the file that has the calendar, or take calendar out of the schedules; until then their jobs are parked"},
	"pauses": {Warning, func(d *store.Damage) string {
		return fmt.Sprintf("the pause %d holds a %s whose row is gone", d.Count, d.What)
	}, "set resumed_at in its row of pauses"},
	"ticks": {Wrong, func(d *store.Damage) string {
		return fmt.Sprintf("a pass of the trigger %s is on record at %s, in the future", d.What, instant(d.At))
	}, "the clock of the database was ahead; run dbjobs job replan"},
}

// ofClock has what runs look like after the clock has gone back, as it does when it was ahead and is put right.
var ofClock = map[string]bool{"ended before it began": true, "made in the future": true, "begun in the future": true}

// idle has the kinds of damage that mean nothing before a pass comes.
var idle = map[string]bool{"stuck": true, "unplanned": true}

// damages reports the damage that the store finds.
func (e *exam) damages(ctx context.Context) error {
	list, err := e.s.Damages(ctx, most)
	for i := range list {
		d := &list[i]
		if d.Kind == "runs" && ofClock[d.What] {
			d.Kind = "clock-back"
		}
		k, known := damages[d.Kind]
		switch {
		case !known:
			return fmt.Errorf("there are no words for the damage %s", d.Kind)
		case d.Kind == "older" && (e.of[d.JobID] == nil || e.of[d.JobID].CreatedAt.Sub(d.At) < patient || e.of[d.JobID].CreatedAt.After(e.now)): // the clock was set
			continue
		case idle[d.Kind] && !e.left(d.At), d.Kind == "queued" && e.frozen: // in a freeze, nobody takes a run
			continue
		}
		e.find(d.Kind, k.level, e.name(d.JobID), k.advice, "%s", k.problem(d))
	}
	return err
}

// name returns the name of a job.
func (e *exam) name(id int64) string {
	if j := e.of[id]; j != nil {
		return j.FullName()
	}
	if id == 0 {
		return ""
	}
	return fmt.Sprintf("number %d", id)
}

func instant(t time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	return t.UTC().Format(time.RFC3339)
}
