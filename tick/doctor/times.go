package doctor

import (
	"context"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
)

const (
	page     = 200       // how many jobs have their record read at once
	mostAll  = 2_000_000 // the most nominal times that are looked at, of all rules together
	mostRule = 20_000    // the most nominal times of one rule: the newest
	pruning  = time.Hour // a record this close to the end of its retention may be deleted while it is read
)

// times compares the nominal times of all rules with the records: each time that is decided must have a
// run, or lie in exactly one gap of its rule.
func (e *exam) times(ctx context.Context) error {
	each := max(100, min(mostRule, mostAll/max(1, len(e.jobs))))
	for part := range slices.Chunk(e.jobs, page) {
		rec, err := e.s.Records(ctx, store.IDs(part), e.o.Since)
		if err != nil {
			return err
		}
		for i := range rec.Rules {
			if err := ctx.Err(); err != nil {
				return err
			}
			r := &rec.Rules[i]
			// A parked job may have a rule that cannot be read. With another release of the zone database, the times that were
			// decided are not those that this program finds.
			release := rules.Release(r.Ends)
			if j := e.of[r.JobID]; j.Parked == "" && (release == "" || release == rules.TZDataVersion()) {
				e.account(j, r, &rec, each)
			}
		}
	}
	e.report.Shorter = len(e.shorter)
	return nil
}

// since is the instant after which all nominal times of a rule are on record. shorter says that keep has deleted the record of others
// that were to be looked at.
func (e *exam) since(j *store.JobStatus, r *store.Record, rec *store.Recorded) (since time.Time, shorter bool) {
	all := latest(r.Since, e.o.Since, j.NotBefore.Add(-time.Microsecond))
	since = latest(all, e.now.Add(pruning-time.Duration(j.Keep.Age)))
	if rec.Oldest[j.ID] > 1 { // runs were deleted because of the number of runs to keep
		if first := rec.From[j.ID]; first.IsZero() {
			since = j.DecidedThrough // all that is left are requests
		} else {
			since = latest(since, first)
		}
	}
	return since, since.After(all)
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// account looks at the newest nominal times of a rule.
func (e *exam) account(j *store.JobStatus, r *store.Record, rec *store.Recorded, most int) {
	rule, err := rules.Parse(r.Rule, rules.Defaults{Ends: r.Ends})
	if err != nil {
		e.find("rule", Wrong, j.FullName(), "apply the job again", "the rule of its plan cannot be read: %v", err)
		return
	}
	if _, err := decide.NewNominal(&j.Job, nil); err != nil { // resolves the start schedule of a job made by SQL
		return
	}
	since, shorter := e.since(j, r, rec)
	end := j.DecidedThrough
	if !j.NotAfter.IsZero() && j.NotAfter.Before(end) {
		end = j.NotAfter
	}
	gaps := cover(r.Gaps)
	var missing, twice []time.Time // newest first
	t, err := rule.Prev(end.Add(time.Microsecond))
	for n := 0; err == nil && t.After(since) && n < most; n++ {
		e.report.Times++
		switch gaps := gaps.count(t); {
		case rec.Ran[j.ID][t.UTC()]:
		case gaps == 0:
			missing = append(missing, t)
		case gaps > 1:
			twice = append(twice, t)
		}
		t, err = rule.Prev(t)
	}
	if shorter || err == nil && t.After(since) {
		e.shorter[j.ID] = true
	}
	tell := func(check string, times []time.Time, advice, problem string) {
		if n := len(times); n > 0 {
			e.find(check, Wrong, j.FullName(), advice, problem+": %d, from %s to %s", n, instant(times[n-1]), instant(times[0]))
		}
	}
	tell("unaccounted", missing, "rows were deleted or changed by hand, or restored from an older copy; make up for them with dbjobs job backfill",
		"nominal times that were decided, and have neither a run nor a gap")
	tell("gap-twice", twice, "rows were added or changed by hand; delete one of them from gaps", "nominal times that lie in two gaps")
}

// coverage has the starts and the ends of gaps, each in order. There may be as many gaps as times, so that a time is looked up.
type coverage struct{ from, through []time.Time }

// cover leaves out gaps that end before they begin: no time lies in them.
func cover(gaps []store.Gap) (c coverage) {
	for i := range gaps {
		if g := &gaps[i]; !g.Through.Before(g.From) {
			c.from, c.through = append(c.from, g.From), append(c.through, g.Through)
		}
	}
	slices.SortFunc(c.from, time.Time.Compare)
	slices.SortFunc(c.through, time.Time.Compare)
	return c
}

// count counts the gaps in which a nominal time lies: those that have begun before it, but for those that have ended before it.
func (c coverage) count(t time.Time) int {
	begun, _ := slices.BinarySearchFunc(c.from, t, time.Time.Compare)
	ended, _ := slices.BinarySearchFunc(c.through, t, time.Time.Compare)
	return begun - ended
}
