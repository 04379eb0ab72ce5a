package intake

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// Model is what a scheduler does with a cron line when clocks change.
type Model int

const (
	// Vixie is cron on the clock of its machine. It makes up at once for up to three hours that are skipped, and
	// does not run repeated times again. Lines whose minute or hour begins with a star are different: they follow
	// the clock as it is.
	Vixie Model = iota
	// Plain matches each minute of the wall clock: skipped times never run, and repeated times run twice. Cronie
	// does this with CRON_TZ, pg_cron with cron.timezone, and Kubernetes.
	Plain
)

// change is a clock change, with the offsets around it in seconds.
type change struct {
	at            int64
	before, after int64
	text          string // "02:00 becomes 03:00"
	date          string // of the times that are left out or repeated, on the wall clock
}

// changes returns the clock changes of a zone in the year after an instant.
func changes(zone string, from time.Time) (list []change, err error) {
	any, err := rules.Parse("0 0 * * *", rules.Defaults{Zone: zone})
	if err != nil {
		return nil, err
	}
	end := from.AddDate(1, 0, 0)
	for at := from; ; {
		e, err := rules.Explain(any, at)
		if err != nil {
			return nil, err
		}
		for _, n := range e.OddNights {
			if n.At.After(end) {
				return list, nil
			}
			c := change{at: n.At.Unix(), before: offset(n.At.Add(-time.Second), zone), after: offset(n.At, zone), text: n.Change}
			c.date = time.Unix(c.at+max(c.before, c.after)-1, 0).UTC().Format(time.DateOnly)
			list, at = append(list, c), n.At
		}
		if len(e.OddNights) < 2 {
			return list, nil
		}
	}
}

// offset returns the offset of a zone at an instant, in seconds east of UTC.
func offset(t time.Time, zone string) int64 {
	wall := rules.Local(t, zone) // Mon 2026-03-30 02:30:00 +02:00
	local, err := time.Parse("2006-01-02 15:04:05", wall[4:23])
	if err != nil {
		return 0
	}
	return local.Unix() - t.Unix()
}

// around is how far from a change runs are compared: Vixie's cron makes up for three hours.
const around = 5 * 60 * 60

// runs returns the instants at which a scheduler starts the line near a change. An instant at which it starts the
// line twice is in the list twice.
func (c *Cron) runs(m Model, ch *change) (list []int64) {
	add := func(at, wall int64, starred, named bool) {
		if star := c.MinuteStar || c.HourStar; (starred && star || named && !star) && c.matches(wall) {
			list = append(list, at)
		}
	}
	virtual := (ch.at-around+ch.before)/60 - 1
	for at := ch.at - around; at < ch.at+around; at += 60 {
		wall := (at + ch.before) / 60
		if at >= ch.at {
			wall = (at + ch.after) / 60
		}
		ahead := wall - virtual
		switch {
		case m == Plain || ahead == 1 || ahead > 3*60 || ahead <= -3*60:
			virtual = wall
			add(at, wall, true, true)
		case ahead <= 0: // repeated: only lines with a star, until the clock has caught up
			add(at, wall, true, false)
		default: // skipped: lines with a star once, the others for each minute that is lost
			late := ahead <= 5 // a few minutes count as a late wake-up
			if !late {
				add(at, wall, true, false)
			}
			for virtual < wall {
				virtual++
				add(at, virtual, late, true)
			}
		}
	}
	return list
}

// matches reports whether the line names a minute of the wall clock. Minutes are counted from 1970.
func (c *Cron) matches(minute int64) bool {
	t := time.Unix(minute*60, 0).UTC()
	if c.Minute>>t.Minute()&1 == 0 || c.Hour>>t.Hour()&1 == 0 || c.Month>>int(t.Month())&1 == 0 {
		return false
	}
	day, week := c.Day>>t.Day()&1 != 0, c.Weekday>>int(t.Weekday())&1 != 0
	if c.LastDay && t.AddDate(0, 0, 1).Day() == 1 {
		day = true
	}
	if c.DayStar || c.WeekdayStar {
		return day && week
	}
	return day || week
}

// Nights compares a scheduler and dbjobs on each night, in the year after from, on which the clocks of the zone
// change. It sets the clock-change policies of dbjobs (nonexistent, ambiguous) to those that come nearest to the
// scheduler. It returns a remark for each night on which the two differ, or would differ without these policies.
func (c *Cron) Nights(s *store.Schedule, m Model, who string, from time.Time) (notes []string, err error) {
	if c.Any {
		return nil, nil // the time that dbjobs chooses for ~ differs from cron's in any case
	}
	list, err := changes(s.Zone, from)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	var usual, left []night
	var chosen store.Schedule
	for i, policy := range [][2]string{
		{store.NonexistentForward, store.AmbiguousFirst}, {store.NonexistentSkip, store.AmbiguousFirst},
		{store.NonexistentForward, store.AmbiguousBoth}, {store.NonexistentSkip, store.AmbiguousBoth},
	} {
		try := *s
		try.Nonexistent, try.Ambiguous = policy[0], policy[1]
		nights, err := c.differ(&try, m, list)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			usual = nights
		}
		if i == 0 || len(nights) < len(left) {
			chosen, left = try, nights
		}
	}
	if len(usual) == 0 {
		return nil, nil
	}
	var keys []string
	if chosen.Nonexistent != store.NonexistentForward {
		s.Nonexistent, keys = chosen.Nonexistent, append(keys, "nonexistent: "+chosen.Nonexistent)
	}
	if chosen.Ambiguous != store.AmbiguousFirst {
		s.Ambiguous, keys = chosen.Ambiguous, append(keys, "ambiguous: "+chosen.Ambiguous)
	}
	for _, n := range usual {
		if len(keys) > 0 && !slices.ContainsFunc(left, func(l night) bool { return l.change.at == n.change.at }) {
			without := n.ours.when()
			if len(n.ours.list) == 0 && n.theirs.again() {
				without = "once"
			}
			notes = append(notes, fmt.Sprintf("%s: %s %s; %s keeps that (without: %s).",
				n.change, who, n.theirs.does(), strings.Join(keys, ", "), without))
		}
	}
	for _, n := range left {
		notes = append(notes, fmt.Sprintf("%s: %s %s, dbjobs %s.", n.change, who, n.theirs.does(), n.ours.does()))
	}
	return notes, nil
}

// night is a change around which a scheduler and dbjobs differ: the runs that only one of them has.
type night struct {
	change       *change
	theirs, ours shown
}

// differ finds the changes around which a scheduler and dbjobs do not run the line at the same times.
func (c *Cron) differ(s *store.Schedule, m Model, list []change) (nights []night, err error) {
	r, err := rules.Parse(s.Rule, rules.Defaults{Zone: s.Zone, Nonexistent: s.Nonexistent, Ambiguous: s.Ambiguous})
	if err != nil {
		return nil, err
	}
	for i := range list {
		ch := &list[i]
		theirs := c.runs(m, ch)
		times, err := r.Between(time.Unix(ch.at-around-1, 0), time.Unix(ch.at+around-1, 0), 0)
		if err != nil {
			return nil, err
		}
		ours := make([]int64, len(times))
		for i, t := range times {
			ours[i] = t.Unix()
		}
		n := night{ch, shown{ch, without(theirs, ours), theirs}, shown{ch, without(ours, theirs), ours}}
		if len(n.theirs.list)+len(n.ours.list) > 0 {
			nights = append(nights, n)
		}
	}
	return nights, nil
}

// without returns the members of a that b lacks. A member that b lacks several times is there several times.
func without(a, b []int64) (list []int64) {
	have := map[int64]int{}
	for _, t := range b {
		have[t]++
	}
	for _, t := range a {
		if have[t]--; have[t] < 0 {
			list = append(list, t)
		}
	}
	return list
}

func (ch *change) String() string { return "Clock change " + ch.date + " (" + ch.text + ")" }

// shown is a list of runs near a change, for people.
type shown struct {
	change *change
	list   []int64
	all    []int64 // the runs that list is taken from
}

func (s shown) does() string {
	if len(s.list) == 0 {
		return "does not run it then"
	}
	if s.again() {
		return "runs it a second time, " + s.when()
	}
	return "runs it " + s.when()
}

// again reports whether each run is at a wall time that the change repeats and at which there was an earlier run.
func (s shown) again() bool {
	back := s.change.before - s.change.after
	return back > 0 && !slices.ContainsFunc(s.list, func(t int64) bool { return t < s.change.at || !slices.Contains(s.all, t-back) })
}

// when lists the runs by the wall clock, with the offset, because an hour may be there twice.
func (s shown) when() string {
	const most = 3
	if len(s.list) == 0 {
		return "not then"
	}
	var text []string
	for _, at := range s.list[:min(most, len(s.list))] {
		off := s.change.before
		if at >= s.change.at {
			off = s.change.after
		}
		text = append(text, time.Unix(at, 0).In(time.FixedZone("", int(off))).Format("15:04 -07:00"))
	}
	if more := len(s.list) - most; more > 0 {
		return fmt.Sprintf("at %s and %d more", strings.Join(text, ", "), more)
	}
	return "at " + strings.Join(text, ", ")
}

// Changes returns the clock changes of a zone in the year after an instant, such as "2027-03-28 (02:00 becomes
// 03:00)".
func Changes(zone string, from time.Time) (texts []string, err error) {
	list, err := changes(zone, from)
	for i := range list {
		texts = append(texts, list[i].date+" ("+list[i].text+")")
	}
	return texts, err
}

// Meets reports whether a rule has a time that one of the Changes skips or repeats, and what dbjobs does then. A
// rule has such a time if its times near the change depend on the policies.
func Meets(s *store.Schedule, text string, from time.Time) (hit bool, what string) {
	list, err := changes(s.Zone, from)
	if err != nil {
		return false, ""
	}
	for i := range list {
		ch := &list[i]
		if ch.date+" ("+ch.text+")" != text {
			continue
		}
		times := func(nonexistent, ambiguous string) []int64 {
			r, err := rules.Parse(s.Rule, rules.Defaults{Zone: s.Zone, Nonexistent: nonexistent, Ambiguous: ambiguous})
			if err != nil {
				return nil
			}
			found, _ := r.Between(time.Unix(ch.at-around-1, 0), time.Unix(ch.at+around-1, 0), 0) // undecided: none
			list := make([]int64, len(found))
			for i, t := range found {
				list[i] = t.Unix()
			}
			return list
		}
		ours := times(store.NonexistentForward, store.AmbiguousFirst)
		if !slices.Equal(ours, times(store.NonexistentSkip, store.AmbiguousBoth)) {
			return true, shown{ch, ours, nil}.does()
		}
	}
	return false, ""
}
