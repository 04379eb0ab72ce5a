package store

import (
	"cmp"
	"strings"
	"time"
)

// The occurrence of a run is its key within its job: no job has two runs with the same key, so nothing is decided or
// requested twice. It begins with the reason for the run, and all keys are made and read here. Three statements read
// them as well: the macros @predecessor and @meeting of each engine, and jobs in store/engine/sql/queries.sql.
const (
	occurrenceAt    = "at:"    // a nominal time
	occurrenceAfter = "after:" // the id of the run that ended; without an interval, also what that run meets, if it is another one
	occurrenceAll   = "all:"   // of runs of several jobs: the end of their interval, or the id of the run from which they come
	occurrenceStart = "start:" // the identity of a start-up
	occurrenceNow   = "now:"   // requested: the id of the run itself
	occurrenceKey   = "key:"   // requested: a key that the caller has chosen
	occurrenceHook  = "hook:"  // an event of a job, and its cause
	occurrenceFill  = "fill:"  // requested by a backfill: a nominal time, and for a second one an id

	occurrenceTime = "2006-01-02T15:04:05.000000Z"
)

// OccurrenceAt is the occurrence of a run for a nominal time.
func OccurrenceAt(nominal time.Time) string {
	text := append(make([]byte, 0, len(occurrenceAt)+len(occurrenceTime)), occurrenceAt...)
	return string(nominal.UTC().AppendFormat(text, occurrenceTime))
}

// OccurrenceAfter is the occurrence of a run that follows a run of another job. Runs without an interval hand on what they meet,
// unless plain SQL has given them a longer one than the column holds.
func OccurrenceAfter(predecessor *Run) string {
	key := occurrenceAfter + predecessor.ID
	if meets := predecessor.Meets(); predecessor.IntervalEnd.IsZero() && meets != predecessor.ID && len(key)+1+len(meets) <= maxName {
		key += ":" + meets
	}
	return key
}

// OccurrenceAll is the occurrence of a run that follows runs of several jobs.
func OccurrenceAll(meets string) string { return occurrenceAll + meets }

// OccurrenceStart is the occurrence of a run for a start-up.
func OccurrenceStart(id string) string { return occurrenceStart + id }

// OccurrenceHook is the occurrence of a run that an event of a job made. cause is unique among the
// events of its kind.
func OccurrenceHook(event, cause string) string { return occurrenceHook + event + ":" + cause }

// fillOccurrence is the occurrence of a backfill's run for a nominal time. again is empty, or the id
// that distinguishes a second backfill of the same nominal time.
func fillOccurrence(nominal time.Time, again string) string {
	key := occurrenceFill + nominal.UTC().Format(occurrenceTime)
	if again != "" {
		key += ":" + again
	}
	return key
}

// fillsThrough follows all occurrences of backfills for nominal times up to an instant, and no later ones.
func fillsThrough(nominal time.Time) string { return fillOccurrence(nominal, "") + ";" } // which follows the colon before an id

// Requested reports whether the run is not for a nominal time: a person requested it, or it follows a run of another
// job, an event or a start-up. It waits behind the active runs, and the policies for nominal times do not apply to
// it.
func (r *Run) Requested() bool { return !strings.HasPrefix(r.Occurrence, occurrenceAt) }

// ToCome reports whether the run was requested for a time that has not come. Until that time the run does not block
// others.
func (r *Run) ToCome(now time.Time) bool {
	return r.Requested() && r.State == Waiting && !r.Begun() && r.ReadyAt.After(now)
}

// Predecessor is the id of the run that this run follows; empty if it follows none.
func (r *Run) Predecessor() string {
	id, _, _ := strings.Cut(r.reason(occurrenceAfter), ":")
	return id
}

// comesFrom is what the run that this run follows meets without an interval; empty if it follows none.
func (r *Run) comesFrom() string {
	id, meets, _ := strings.Cut(r.reason(occurrenceAfter), ":")
	return cmp.Or(meets, id)
}

// Meeting is what the runs that this run follows have in common; empty if it does not follow several.
func (r *Run) Meeting() string { return r.reason(occurrenceAll) }

// Event is the event that made this run, with its cause; empty if none did.
func (r *Run) Event() string { return r.reason(occurrenceHook) }

// StartupID is the identity of the start-up that this run is for; empty if it is for none.
func (r *Run) StartupID() string { return r.reason(occurrenceStart) }

func (r *Run) reason(kind string) string {
	if id, ok := strings.CutPrefix(r.Occurrence, kind); ok {
		return id
	}
	return ""
}
