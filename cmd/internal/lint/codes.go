package lint

import (
	"maps"
	"slices"

	"github.com/dbjobs/dbjobs/rules"
)

// The codes of warnings, beside those of rules. They are for filters, and stay.
const (
	Zoneless         = "zoneless"           // a cron text that names no zone
	SecretInStep     = "secret-in-step"     // a value of a step looks like a secret
	SecretInVariable = "secret-in-variable" // a variable that a file names looks like one
	UnlikelyStep     = "unlikely-step"      // a step holds what is allowed, and hardly meant
	CalendarEnds     = "calendar-ends"      // the days of a calendar are over soon, or cannot be read

	// RetriesOutlast: the waits between the tries of a step, without the tries, last longer than the shortest of the next
	// 200 gaps between two times of the job. It is silent with until-next, and where the overlap allows several runs.
	RetriesOutlast = "retries-outlast-interval"
	// NeverMeets: a schedule has times, and none between start and end of the job; or a job runs after two jobs of the same
	// file that run by rules alone, and for 400 days have no time in common. Of jobs in other files, and of rules that count
	// from their creation or spread by name, it says nothing.
	NeverMeets = "never-meets"
	// NotAllowedHere: the settings of this host do not allow the program, the target, or the address that a step names. It is
	// silent for names that have to be looked up, for jobs of other queues, where there are no settings, and where these
	// give no leave of that kind to anybody: then another host is likely to execute the job.
	NotAllowedHere = "not-allowed-here"
	// UnusedSchedule: no job of the file uses a schedule that is new. It is silent where a file has no jobs.
	UnusedSchedule = "unused-schedule"
	// RunsByHandOnly: a change takes away all that made a job run. It is silent for a new job, whose first run says it, and
	// for one that a job of the file names as a hook.
	RunsByHandOnly = "runs-by-hand-only"
)

// advice is what to do about a warning, by its code; empty where its text says that.
var advice = map[string]string{
	Zoneless:              "name its zone, as in zone: Europe/Berlin, or zone: UTC if that is meant",
	SecretInStep:          "name a secret of the host, ${secret:NAME}, in its place",
	SecretInVariable:      "name a secret of the host, ${secret:NAME}, in its place",
	UnlikelyStep:          "",
	CalendarEnds:          "",
	RetriesOutlast:        "use fewer attempts or a smaller max_backoff, or attempts: until-next, which end in time",
	NeverMeets:            "",
	NotAllowedHere:        "if another host executes it, nothing is wrong",
	UnusedSchedule:        "if no other file is to use it, remove it",
	RunsByHandOnly:        "if that is not meant, give it a schedule, or after",
	rules.WarnExhausted:   "give it a rule with times to come",
	rules.WarnDense:       "if that is not meant, give it a longer interval",
	rules.WarnMonthEnd:    "",
	rules.WarnClockChange: "if that matters, choose a time that each day has once, or zone: UTC",
	rules.WarnPastStart:   "if that is not meant, give it a later start",
	rules.WarnUnaligned:   "if the start is to count, let it match the rule",
	rules.WarnEitherDay:   "for days that match both, write an RRULE with BYMONTHDAY and BYDAY",
	rules.WarnBothDays:    "if either is meant, begin neither field with * or ?",
	rules.WarnUnevenStep:  "",
	rules.WarnLoneStep:    "if that is meant, leave the step out",
}

// Codes are the codes of all warnings.
func Codes() []string { return slices.Sorted(maps.Keys(advice)) }
