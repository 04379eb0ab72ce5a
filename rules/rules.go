package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Defaults has what the text of a rule does not say.
type Defaults struct {
	Zone        string    // IANA name; "" is UTC. Times without a zone are read in it.
	Start       time.Time // creation: `I` counts from it, and it is the DTSTART of an RRULE text without one; zero is the Unix epoch
	Seed        string    // the schedule's name, for `~`
	Nonexistent string    // what a wall time in a gap means: "forward" (or "") | "skip"
	Ambiguous   string    // what a wall time in a fold means: "first" (or "") | "last" | "both"
	Calendar    *Calendar // the calendar whose holidays are left out, or moved; nil: none
	OnHoliday   string    // what happens to an occurrence on a holiday: "skip" (or ""), "next" or "previous" working day
	Ends        string    // the result of Ends for a rule with the same text, so that nothing is counted from the start; optional
}

// A Rule is a recurrence set. It is immutable and safe for concurrent use.
type Rule struct {
	zone            *zone
	policy          policy
	start           int64 // DTSTART, on the zone's wall clock
	undated         bool  // the text has single dates alone, and no DTSTART: it is the earliest of them
	includes        []recur
	excludes        []recur
	past            map[*recur]int // of how many more times than its text names a recurrence has the COUNT; see countAfter
	rdates, exdates []int64        // instants, sorted
	exdays          []int          // days that EXDATE removes, sorted
	single          singleDates
	calendar        *Calendar
	onHoliday       onHoliday
	dayZone         *zone   // the zone of the calendar's days, if the rule is kept in UTC
	ends            []int64 // where each COUNT ends, in the order of includes and excludes
	never           string  // why one of the recurrences never fires; empty: all fire
	form            *form
	source, seed    string
	series, barred  []series
}

// form is a way to write a rule. All are compiled to the same Rule.
type form struct {
	name     string
	claims   func(text string) bool         // reports whether a text is meant to be of this form
	parse    func(r *Rule, in *input) error // fills in the rule
	sentence func(r *Rule) string           // the meaning of the rule's source, in English
}

// forms are asked in this order. A new form needs a file and a line here.
var forms []*form

func init() {
	forms = []*form{&rruleForm, &cronForm, &agentForm, &intervalForm, &pgjobsForm, &onceForm}
}

// input is the text of a rule, with its defaults resolved.
type input struct {
	text  string // without surrounding white space
	at    int    // its offset in the text that was given
	seed  string
	start time.Time
	made  bool // the rule begins at start: its text names no other beginning
	dated bool // a calendar judges the dates of the rule's times
}

// longest is the longest text of a rule, in bytes. It is that of a column of MySQL.
const longest = 64<<10 - 1

// Parse reads a rule in any of its forms: RRULE, cron, interval, pgjobs, calendar
// or once. An error is a *SyntaxError, wraps ErrNeverFires or ErrUndecided, or
// says which default is wrong.
func Parse(text string, d Defaults) (*Rule, error) {
	r, in, err := begin(text, d)
	if err != nil {
		return nil, elsewhere(zoneInText(err, text), text)
	}
	z := r.zone
	if err := r.form.parse(r, in); err != nil {
		return nil, elsewhere(zoneInText(err, text), text)
	}
	if in.made {
		r.countAfter(in.start)
	}
	if err := r.setCalendar(d.Calendar, d.OnHoliday, z); err != nil {
		return nil, err
	}
	if err := r.finish(d.Ends); err != nil {
		return nil, err
	}
	if n := len(r.String()); n > longest {
		return nil, refuse("rule", in.at, in.text, "a rule has at most %d bytes as RFC 5545 text, with each date as a time and the days of its calendar, this one has %d", longest, n)
	}
	return r, nil
}

// DependsOnStart reports whether it may depend on Defaults.Start, the creation of
// its schedule, that Parse refuses a rule as one that never fires: the rule counts
// from there, and may fire from another start. It returns false only if the rule
// surely fires from no start.
func DependsOnStart(text string) bool {
	// What a start can bar is left out. Of the days of a month, the first ones exist
	// always, and seven days of January have all weekdays.
	for day := range 7 {
		r, in, err := begin(text, Defaults{Start: time.Date(2001, 1, 1+day, 0, 0, 0, 0, time.UTC)})
		if err != nil || r.form.parse(r, in) != nil || !in.made {
			return false
		}
		r.excludes, r.exdates, r.exdays = nil, nil, nil
		for i := range r.includes {
			c := &r.includes[i]
			c.interval, c.count, c.until = 1, 0, noUntil
		}
		if !errors.Is(r.finish(""), ErrNeverFires) {
			return true
		}
	}
	return false
}

// begin resolves the defaults and finds the form of a text.
func begin(text string, d Defaults) (*Rule, *input, error) {
	z, err := zoneNamed(d.Zone)
	if err != nil {
		return nil, nil, err
	}
	p, err := policyNamed(d.Nonexistent, d.Ambiguous)
	if err != nil {
		return nil, nil, err
	}
	in := &input{text: strings.TrimSpace(text), seed: d.Seed, start: d.Start, dated: d.Calendar != nil}
	in.at = strings.Index(text, in.text)
	if err := checkText(in); err != nil {
		return nil, nil, err
	}
	r := &Rule{zone: z, policy: p, source: in.text, seed: in.seed}
	for _, f := range forms {
		if f.claims(in.text) {
			r.form = f
			return r, in, nil
		}
	}
	word, _, _ := strings.Cut(in.text, " ")
	if hint := insteadOfWord(strings.ToLower(word)); hint != "" {
		return nil, nil, refuse("rule", in.at, word, "%s", hint)
	}
	return nil, nil, refuse("rule", in.at, word, "a rule is an RRULE text (FREQ=…), five or six cron fields, "+
		"`every N unit`, `daily|weekly|monthly … at H:MM`, `daily every N unit from H:MM to H:MM`, pgjobs `D|W|I …`, or `at TIME`")
}

func checkText(in *input) error {
	if len(in.text) > longest {
		return refuse("rule", in.at, in.text, "a rule has at most %d bytes, this one has %d", longest, len(in.text))
	}
	for i := range len(in.text) {
		c := in.text[i]
		if c < ' ' && c != '\n' && c != '\t' && !(c == '\r' && i+1 < len(in.text) && in.text[i+1] == '\n') || c >= 0x7f {
			_, size := utf8.DecodeRuneInString(in.text[i:])
			return refuse("rule", in.at+i, in.text[i:i+size], "a rule is printable ASCII")
		}
	}
	return nil
}

func policyNamed(nonexistent, ambiguous string) (p policy, err error) {
	switch nonexistent {
	case "", "forward":
	case "skip":
		p.skip = true
	default:
		return p, fmt.Errorf("nonexistent is %q; allowed: forward, skip", nonexistent)
	}
	switch ambiguous {
	case "", "first":
		p.first = true
	case "last":
		p.last = true
	case "both":
		p.first, p.last = true, true
	default:
		return p, fmt.Errorf("ambiguous is %q; allowed: first, last, both", ambiguous)
	}
	return p, nil
}

func (p policy) names() (nonexistent, ambiguous string) {
	nonexistent, ambiguous = "forward", "first"
	if p.skip {
		nonexistent = "skip"
	}
	switch {
	case p.first && p.last:
		ambiguous = "both"
	case p.last:
		ambiguous = "last"
	}
	return nonexistent, ambiguous
}

// epoch is the beginning of rules that do not say when they begin:
// 1970-01-01T00:00:00 on the wall clock.
const epoch = 0

// finish compiles a rule whose text has been read, finds where its COUNTs end,
// and refuses it if it never fires.
func (r *Rule) finish(ends string) error {
	if len(r.includes) == 0 { // RFC 5545 §3.8.5.3: DTSTART is the first instance
		if lost := r.lostDates(); r.undated && len(lost) > 0 { // in the canonical text, DTSTART is a date, too
			r.start = min(r.start, lost[0])
		}
		r.rdates = append(r.rdates, r.zone.readings(r.start, r.policy)...)
	}
	slices.Sort(r.rdates)
	r.rdates = slices.Compact(r.rdates)
	slices.Sort(r.exdates)
	r.exdates = slices.Compact(r.exdates)
	slices.Sort(r.exdays)
	r.exdays = slices.Compact(r.exdays)
	if !r.readsWallClock() {
		r.policy = defaultPolicy
	}
	var err error
	known, b := r.knownEnds(ends), budget{parseSteps}
	if r.series, known, err = r.compileAll(r.includes, known, &b); err != nil {
		return err
	}
	if r.barred, _, err = r.compileAll(r.excludes, known, &b); err != nil {
		return err
	}
	return r.mustFire()
}

// readsWallClock reports whether the clock-change policies can matter.
func (r *Rule) readsWallClock() bool {
	if r.zone == utc {
		return false
	}
	if r.moves() {
		return true
	}
	for _, list := range [2][]recur{r.includes, r.excludes} {
		for i := range list {
			if list[i].pinned() {
				return true
			}
		}
	}
	return r.startIsOdd()
}

// startIsOdd reports whether DTSTART lies in a gap or a fold.
func (r *Rule) startIsOdd() bool {
	_, n := r.zone.instants(r.start)
	return n != 1
}

// compileAll compiles recurrences. It removes those that are proved never to
// fire, and joins those that differ only in days.
func (r *Rule) compileAll(list []recur, known []int64, b *budget) (out []series, rest []int64, err error) {
	if len(list) > 0 {
		out = make([]series, 0, len(list))
	}
	for i := range list {
		s := compile(&list[i], r.zone, r.policy, r.start)
		never, err := s.neverFires(b)
		if err != nil {
			return nil, nil, fmt.Errorf("%w (%s)", err, list[i].String())
		}
		if list[i].count > 0 {
			if len(known) > 0 {
				s.end, known = known[0], known[1:]
			} else if never == "" {
				if s.end, err = s.countEnd(int64(list[i].count), b); err != nil {
					return nil, nil, fmt.Errorf("%w: where COUNT=%d ends (%s)", err, list[i].count, list[i].String())
				}
			}
			r.ends = append(r.ends, s.end)
		}
		if b.over() {
			return nil, nil, fmt.Errorf("%w: its recurrences are too many that need a long search; write fewer of them", ErrUndecided)
		}
		if never != "" {
			r.never = never
			continue
		}
		if n := len(out); n > 0 && list[i].count == 0 && out[n-1].joins(&s) {
			continue
		}
		out = append(out, s)
	}
	return out, known, nil
}

func (r *recur) String() string {
	var b strings.Builder
	r.text(&b)
	return b.String()
}

// String returns the rule's canonical text: RFC 5545 lines, DTSTART first, joined
// by newlines. Parsing it gives an equal rule, whatever the defaults are.
func (r *Rule) String() string {
	var b strings.Builder
	if r.zone == utc {
		b.WriteString("DTSTART:")
		writeStamp(&b, r.start)
		b.WriteByte('Z')
	} else {
		b.WriteString("DTSTART;TZID=" + r.zone.name + ":")
		writeStamp(&b, r.start)
	}
	for i := range r.includes {
		b.WriteString("\nRRULE:")
		r.includes[i].text(&b)
	}
	r.writeSingle(&b)
	for i := range r.excludes {
		b.WriteString("\nEXRULE:")
		r.excludes[i].text(&b)
	}
	r.writeDates(&b, "\nEXDATE:", r.exdates)
	r.writeDays(&b)
	if r.readsWallClock() {
		nonexistent, ambiguous := r.policy.names()
		b.WriteString("\n" + xNonexistent + ":" + nonexistent + "\n" + xAmbiguous + ":" + ambiguous)
	}
	return b.String()
}

const (
	xNonexistent = "X-DBJOBS-NONEXISTENT"
	xAmbiguous   = "X-DBJOBS-AMBIGUOUS"
	xHolidays    = "X-DBJOBS-HOLIDAYS"
	xWorkingDays = "X-DBJOBS-WORKING-DAYS"
	xOnHoliday   = "X-DBJOBS-ON-HOLIDAY"
)

// writeDays writes the days that EXDATE removes, and the calendar.
func (r *Rule) writeDays(b *strings.Builder) {
	for i, day := range r.exdays {
		if i == 0 {
			b.WriteString("\nEXDATE;VALUE=DATE:")
		} else {
			b.WriteByte(',')
		}
		b.WriteString(dateText(day))
	}
	if r.calendar == nil {
		return
	}
	b.WriteString("\n" + xOnHoliday)
	if z := r.days(); z != r.zone {
		b.WriteString(";TZID=" + z.name)
	}
	b.WriteString(":" + holidayNames[r.onHoliday] + "\n" + xWorkingDays + ":" + r.calendar.weekdays())
	if text := r.calendar.text(); text != "" {
		b.WriteString("\n" + xHolidays + ":" + text)
	}
}

// writeSingle writes the single dates: as instants, or as the wall times that are needed.
func (r *Rule) writeSingle(b *strings.Builder) {
	lost := r.lostDates()
	r.writeDates(b, "\nRDATE:", slices.DeleteFunc(slices.Clone(r.rdates), func(t int64) bool {
		became := slices.ContainsFunc(lost, func(c int64) bool { return r.zone.resolve(c, r.policy) == t })
		return became && !slices.Contains(r.single.walls, r.zone.civil(t)) // else another date names the same instant
	}))
	lead := "\nRDATE;TZID=" + r.zone.name + ":"
	for _, c := range lost {
		b.WriteString(lead)
		writeStamp(b, c)
		lead = ","
	}
}

func (r *Rule) writeDates(b *strings.Builder, lead string, list []int64) {
	for _, t := range list {
		b.WriteString(lead)
		writeStamp(b, t)
		b.WriteByte('Z')
		lead = ","
	}
}

// Zone returns the IANA name of the zone on whose wall clock the rule is read. A
// rule that counts only elapsed time, such as `every 5m`, is kept in UTC.
func (r *Rule) Zone() string { return r.zone.name }

// Form returns the name of the form in which the rule was written: rrule, cron,
// interval, pgjobs, calendar or once.
func (r *Rule) Form() string { return r.form.name }
