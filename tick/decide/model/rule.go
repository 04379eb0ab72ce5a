package model

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// Window is (from, to].
type Window struct{ From, To time.Time }

// spans are the spans for a model's times. The clock changes of the zones below are in one of them,
// those of spring and those of autumn.
var spans = []Window{
	{time.Date(2026, 2, 12, 0, 0, 0, 0, time.UTC), time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)},
	{time.Date(2026, 9, 15, 0, 0, 0, 0, time.UTC), time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)},
}

// Rule is a rule that can be decided minute by minute. It names every given number of minutes since
// the epoch, or the minutes and hours and weekdays of a wall clock, or one instant.
type Rule struct {
	every       int   // minutes
	minutes     []int // of the hour
	hours       []int // nil: any
	days        []time.Weekday
	once        time.Time // a wall time, kept in UTC
	zone        string
	nonexistent string
	ambiguous   string
	broken      bool // it does not parse
	calendar    int  // the calendar whose holidays count; 0: none
	onHoliday   string
	bound       *Calendar // the calendar as it is now
}

func randomRule(rng *rand.Rand, span Window) Rule {
	r := Rule{zone: []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"}[rng.IntN(4)], nonexistent: "forward", ambiguous: "first"}
	switch rng.IntN(10) {
	case 0, 1, 2:
		r.every = []int{5, 7, 20, 45, 60, 90, 360}[rng.IntN(7)]
	case 3, 4:
		r.minutes = [][]int{{0, 15, 30, 45}, {10, 40}, {0}, {59}}[rng.IntN(4)]
	case 5:
		days := int(span.To.Sub(span.From).Hours() / 24)
		r.once = span.From.AddDate(0, 0, 10+rng.IntN(days-10)).Add(time.Duration(rng.IntN(1440)) * time.Minute)
	default:
		r.minutes = [][]int{{0}, {30}, {15, 45}, {5}}[rng.IntN(4)]
		r.hours = [][]int{{2}, {1, 2, 3}, {0, 12}, {9, 10, 11, 12, 13, 14, 15, 16, 17}, {23}}[rng.IntN(5)]
		if rng.IntN(3) == 0 {
			r.days = [][]time.Weekday{{0}, {1, 2, 3, 4, 5}, {0, 6}, {3}}[rng.IntN(4)]
		}
	}
	if r.hours != nil || !r.once.IsZero() {
		r.nonexistent = []string{"forward", "skip"}[rng.IntN(2)]
		r.ambiguous = []string{"first", "last", "both"}[rng.IntN(3)]
	}
	if !r.once.IsZero() {
		r.nonexistent = "forward" // with skip, a rule of one time might never fire, and would be refused
	}
	return r.withCalendar(rng)
}

func list[T ~int](values []T, none string) string {
	if values == nil {
		return none
	}
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = fmt.Sprint(int(v))
	}
	return strings.Join(words, ",")
}

// Misspelling is a text that is no rule of any form.
const Misspelling = "evry 5 minutes"

// misspelt turns some changes of a rule into changes that only plain SQL lets through.
func (c Change) misspelt(rng *rand.Rand) Change {
	if rng.IntN(6) == 0 {
		c.SQL, c.Rule.broken = true, true
	}
	return c
}

// text is the rule as a person would write it.
func (r Rule) text() string {
	switch {
	case r.broken:
		return Misspelling
	case r.every > 0:
		return fmt.Sprintf("every %dm", r.every)
	case !r.once.IsZero():
		return "at " + r.once.Format("2006-01-02T15:04:05")
	}
	return fmt.Sprintf("%s %s * * %s", list(r.minutes, "*"), list(r.hours, "*"), list(r.days, "*"))
}

// Schedule is the rule as the schedule of a definition.
func (r Rule) Schedule(name string) store.Schedule {
	c := store.Schedule{Name: name, Rule: r.text(), Zone: r.zone, Nonexistent: r.nonexistent, Ambiguous: r.ambiguous}
	if r.calendar > 0 {
		c.Calendar, c.OnHoliday = CalendarName(r.calendar), r.onHoliday
	}
	return c
}

func (r Rule) String() string {
	text := fmt.Sprintf("%s %s %s %s", r.text(), r.zone, r.nonexistent, r.ambiguous)
	if r.calendar > 0 {
		text += fmt.Sprintf(", calendar %d %s", r.calendar, r.onHoliday)
	}
	if r.bound != nil {
		text += " (" + r.bound.String() + ")"
	}
	return text
}

// elapses reports whether the rule's times depend on real time, and not on the hours that a clock shows.
func (r Rule) elapses() bool { return r.hours == nil && r.once.IsZero() }

func (r Rule) reads(wall time.Time) bool {
	return (r.minutes == nil || slices.Contains(r.minutes, wall.Minute())) && (r.hours == nil || slices.Contains(r.hours, wall.Hour())) &&
		(r.days == nil || slices.Contains(r.days, wall.Weekday()))
}

// walk finds the rule's nominal times of a span. It looks at each minute of the span, without any
// arithmetic of recurrences.
func (r Rule) walk(span Window) []time.Time {
	zone, err := time.LoadLocation(r.zone)
	if err != nil {
		panic(err)
	}
	var found []time.Time
	if r.broken {
		return nil
	}
	if r.elapses() {
		for t := span.From; !t.After(span.To); t = t.Add(time.Minute) {
			if r.every > 0 && t.Unix()/60%int64(r.every) == 0 || r.every == 0 && r.reads(t.In(zone)) {
				found = append(found, t)
			}
		}
		return found
	}
	for wall := span.From; !wall.After(span.To); wall = wall.Add(time.Minute) { // each minute that a wall clock could show
		if r.once.IsZero() && r.reads(wall) || wall.Equal(r.once) {
			found = append(found, r.instants(wall, zone)...)
		}
	}
	slices.SortFunc(found, time.Time.Compare)
	return slices.CompactFunc(found, time.Time.Equal)
}

// instants returns the instants at which a clock of the zone shows a wall time, or the instant that stands for it.
func (r Rule) instants(wall time.Time, zone *time.Location) []time.Time {
	offset := func(t time.Time) time.Duration {
		_, seconds := t.In(zone).Zone()
		return time.Duration(seconds) * time.Second
	}
	before, after := offset(wall.Add(-36*time.Hour)), offset(wall.Add(36*time.Hour))
	var shown []time.Time
	for _, o := range []time.Duration{max(before, after), min(before, after)} {
		if t := wall.Add(-o); offset(t) == o && (len(shown) == 0 || !shown[0].Equal(t)) {
			shown = append(shown, t)
		}
	}
	switch {
	case len(shown) == 0 && r.nonexistent == "skip":
		return nil
	case len(shown) == 0:
		return []time.Time{wall.Add(-before)}
	case r.ambiguous == "both":
		return shown
	case r.ambiguous == "last":
		return shown[len(shown)-1:]
	}
	return shown[:1]
}

// walked keeps the times of walked rules: there are few random rules.
var walked = struct {
	sync.Mutex
	times map[string][]time.Time
	canon map[string]string // by the rule as it is defined
}{times: map[string][]time.Time{}, canon: map[string]string{}}

func (r Rule) key(span Window) string { return r.String() + span.From.String() }

// times returns the nominal times of a span. It finds them only once.
func (r Rule) times(span Window) []time.Time {
	walked.Lock()
	defer walked.Unlock()
	list, ok := walked.times[r.key(span)]
	if !ok {
		if list = r.walk(span); r.bound != nil && !r.broken {
			zone, err := time.LoadLocation(r.zone)
			if err != nil {
				panic(err)
			}
			list = r.onWorkingDays(span, zone)
			slices.SortFunc(list, time.Time.Compare)
			list = slices.CompactFunc(list, time.Time.Equal)
		}
		walked.times[r.key(span)] = list
	}
	return list
}

// Within returns the nominal times in (from, to].
func (r Rule) Within(span Window, w Window) []time.Time {
	list := r.times(span)
	return list[after(list, w.From):max(after(list, w.From), after(list, w.To))]
}

// after returns the index of the first time after t.
func after(list []time.Time, t time.Time) int {
	at, _ := slices.BinarySearchFunc(list, t, func(x, t time.Time) int {
		if x.After(t) {
			return 1
		}
		return -1
	})
	return at
}

func (r Rule) parse() (*rules.Rule, error) {
	return rules.Parse(r.text(), rules.Defaults{Zone: r.zone, Nonexistent: r.nonexistent, Ambiguous: r.ambiguous, Calendar: r.calendarOf(), OnHoliday: r.onHoliday})
}

// canonical is the text that the ledger has for the rule.
func (r Rule) canonical() string {
	walked.Lock()
	defer walked.Unlock()
	if c, ok := walked.canon[r.String()]; ok {
		return c
	}
	p, err := r.parse()
	if err != nil {
		panic(err)
	}
	walked.canon[r.String()] = p.String()
	return p.String()
}
