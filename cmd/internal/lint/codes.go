package lint

import (
	"maps"
	"slices"

	"github.com/dbjobs/dbjobs/rules"
)

// The codes of warnings, besides those of package rules. They are for filters, and never change.
const (
	Zoneless         = "zoneless"           // a rule that names no zone and needs one
	SecretInStep     = "secret-in-step"     // a value of a step looks like a secret
	SecretInVariable = "secret-in-variable" // a variable that a file names has a value that looks like a secret
	UnlikelyStep     = "unlikely-step"      // a step has something that is allowed, but hardly meant
	CalendarEnds     = "calendar-ends"      // the days of a calendar end soon, or cannot be read

	// LeavesNone: a change of a calendar takes away all times that a job still had. It does not run then, or is parked.
	LeavesNone = "calendar-leaves-none"
	// RetriesOutlast: the waits between the tries of a step, without the tries themselves, last longer than the
	// shortest of the next 200 gaps between two times of the job. There is no warning with until-next, and if the
	// overlap policy allows several runs.
	RetriesOutlast = "retries-outlast-interval"
	// AllowsOne: the overlap policy is to allow several runs at a time, and max_running lets one execute.
	AllowsOne = "allows-one"
	// NeverMeets: a schedule has times, but none between the start and the end of the job. Or a job runs after two
	// jobs of the same file that run by rules alone and have no time in common for 400 days. There is no warning
	// about jobs in other files, and about rules that count from their creation or spread by name.
	NeverMeets = "never-meets"
	// MayNotMeet: a job runs after two jobs of the same file that run by rules alone. They have times in common, but one
	// has others, too, and its policies may let it miss a common time: then the job has no run for that time.
	MayNotMeet = "may-not-meet"
	// NotAllowedHere: the settings of this host do not allow the program, the target or the address that a step
	// names. There is no warning for names that have to be looked up, for jobs of other queues, if there are no
	// settings, and if the settings give no permission of that kind to anybody: then another host probably
	// executes the job.
	NotAllowedHere = "not-allowed-here"
	// UnusedSchedule: no job of the file uses a new schedule. There is no warning for a file without jobs.
	UnusedSchedule = "unused-schedule"
	// LostArgument: a job that runs after several others names an argument that none of these can give: the names of
	// their arguments begin with the names of the jobs.
	LostArgument = "lost-argument"
	// RunsByHandOnly: a change removes everything that made a job run. There is no warning for a new job, because
	// its first run says it, and none for a job that another job of the file names as a hook.
	RunsByHandOnly = "runs-by-hand-only"
)

// advice says what to do about a warning, by its code. It is empty if the text of the warning says that.
var advice = map[string]string{
	Zoneless:              "name its zone, as in zone: Europe/Berlin, or zone: UTC if that is meant",
	SecretInStep:          "name a secret of the host, ${secret:NAME}, in its place",
	SecretInVariable:      "name a secret of the host, ${secret:NAME}, in its place",
	UnlikelyStep:          "",
	CalendarEnds:          "",
	LeavesNone:            "if that is not meant, take days out of the calendar, or give it a rule with times to come",
	RetriesOutlast:        "use fewer attempts or a smaller max_backoff, or attempts: until-next, which stops before the next time",
	AllowsOne:             "give it a max_running above 1, or overlap: wait-all",
	NeverMeets:            "",
	MayNotMeet:            "if each common time is to have a run, give that job missed: all, and overlap: wait-all",
	NotAllowedHere:        "if another host executes it, nothing is wrong",
	UnusedSchedule:        "if no other file is to use it, remove it",
	LostArgument:          "unless each run is requested with it, name it as in ${args.JOB.NAME}, with the name of one of these jobs",
	RunsByHandOnly:        "if that is not meant, give it a schedule, or after",
	rules.WarnExhausted:   "give it a rule with times to come",
	rules.WarnDense:       "if that is not meant, give it a longer interval",
	rules.WarnMonthEnd:    "",
	rules.WarnClockChange: "if that matters, choose a time that each day has once, or zone: UTC",
	rules.WarnPastStart:   "if that is not meant, give it a later start",
	rules.WarnUnstarted:   "",
	rules.WarnUnaligned:   "if the start is to count, let it match the rule",
	rules.WarnEitherDay:   "for days that match both, write an RRULE with BYMONTHDAY and BYDAY",
	rules.WarnBothDays:    "if either is meant, begin neither field with * or ?",
	rules.WarnWeekdayOne:  "write names, as in MON-FRI or FRI#2; before L stands a number, and 5L is the last Friday",
	rules.WarnUnevenStep:  "",
	rules.WarnLoneStep:    "if that is meant, leave the step out",
}

// Codes returns the codes of all warnings.
func Codes() []string { return slices.Sorted(maps.Keys(advice)) }
