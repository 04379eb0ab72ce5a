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
)

// advice is what to do about a warning, by its code; empty where its text says that.
var advice = map[string]string{
	Zoneless:              "name its zone, as in zone: Europe/Berlin, or zone: UTC if that is meant",
	SecretInStep:          "name a secret of the host, ${secret:NAME}, in its place",
	SecretInVariable:      "name a secret of the host, ${secret:NAME}, in its place",
	UnlikelyStep:          "",
	CalendarEnds:          "",
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
