package ical

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	goical "github.com/emersion/go-ical"
	"github.com/teambition/rrule-go"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/scripts/prove"
)

var (
	from = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	to   = from.AddDate(2, 0, 0)
)

// question is a rule of the golden files.
type question struct{ rule, zone, nonexistent, ambiguous string }

// questions returns the valid rules of all forms.
func questions(t *testing.T) (list []question) {
	t.Helper()
	files, err := filepath.Glob("../../../rules/testdata/golden/*.txt")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d golden files: %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		q := question{zone: "UTC"}
		for l := range strings.Lines(string(data)) {
			key, value, _ := strings.Cut(strings.TrimSuffix(l, "\n"), ": ")
			switch {
			case strings.HasPrefix(l, "+ ") && len(list) > 0:
				list[len(list)-1].rule += "\n" + strings.TrimSuffix(l[2:], "\n")
			case key == "zone":
				q.zone = value
			case key == "nonexistent":
				q.nonexistent = value
			case key == "ambiguous":
				q.ambiguous = value
			case key == "rule":
				q.rule = value
				list = append(list, q)
			}
		}
	}
	return list
}

// A reader by other authors finds the times of the rule in the feed, over two years. This is tested for each form of a
// rule, in its zone and in zones with clock changes of an hour, of half an hour, and around Ramadan. In the short form,
// a rule is tested with every third pair of a zone and policies, and the next rule with others.
func TestFeedHasTheTimesOfTheRule(t *testing.T) {
	t.Parallel()
	const most, looked = 1500, 3000
	compared, whole, times := 0, 0, 0
	for i, q := range questions(t) {
		for z, zone := range []string{q.zone, "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kolkata", "Africa/Casablanca"} {
			for p, policies := range [][2]string{{q.nonexistent, q.ambiguous}, {"skip", "both"}, {"forward", "last"}} {
				if own := z == 0 && p == 0; !own && (i+z+p)%3 != 0 && !prove.Whole() {
					continue
				}
				r, err := rules.Parse(q.rule, rules.Defaults{Zone: zone, Start: from, Seed: "seed", Nonexistent: policies[0], Ambiguous: policies[1]})
				if err != nil {
					continue
				}
				list, err := r.Events(from, to, time.Time{}, most)
				if err != nil {
					continue // too far away for an answer
				}
				end := to
				events := make([]Event, len(list))
				for i, e := range list {
					if events[i] = (Event{Event: e, UID: fmt.Sprint(i), Summary: q.rule}); !e.Until.IsZero() && e.Until.Before(end) {
						end = e.Until
					}
				}
				want, err := r.Between(from.Add(-time.Second), end, looked)
				if err != nil {
					t.Fatal(err)
				}
				if len(want) == looked {
					end = want[looked-1]
				}
				got := read(t, Feed{Name: "test", Made: from, Events: events}, end)
				if !slices.EqualFunc(got, want, time.Time.Equal) {
					i := 0
					for i < min(len(got), len(want)) && got[i].Equal(want[i]) {
						i++
					}
					t.Errorf("%q in %s, %v: %d times, want %d; from the %dth on %v, want %v\n%+v", q.rule, zone, policies, len(got), len(want), i,
						got[i:min(i+3, len(got))], want[i:min(i+3, len(want))], list)
					return
				}
				compared++
				times += len(got)
				if end.Equal(to) {
					whole++
				}
			}
		}
	}
	t.Logf("%d rules in their zones, %d of them over the whole two years: %d times", compared, whole, times)
	if compared < 1000 || whole < compared/2 || times < 500_000 {
		t.Errorf("only %d rules were compared, %d over two years", compared, whole)
	}
}

// read returns the times that a reader finds in a feed: all times up to an instant, each once. go-ical decodes the
// feed, and rrule-go expands its recurrences on wall times. The feed's own VTIMEZONE turns these into instants.
func read(t *testing.T, f Feed, end time.Time) (list []time.Time) {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, f); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for l := range strings.SplitSeq(strings.TrimSuffix(text, "\r\n"), "\r\n") {
		if len(l) > 75 || strings.ContainsAny(l, "\r\n") {
			t.Fatalf("a line of %d octets: %q", len(l), l)
		}
	}
	c, err := goical.NewDecoder(&b).Decode()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	zones := map[string]zone{"": {{offset: 0}}}
	for _, child := range c.Children {
		switch child.Name {
		case goical.CompTimezone:
			zones[child.Props.Get(goical.PropTimezoneID).Value] = readZone(t, child)
		case goical.CompEvent:
			list = append(list, readEvent(t, child, zones, end)...)
		}
	}
	slices.SortFunc(list, time.Time.Compare)
	return slices.CompactFunc(list, time.Time.Equal)
}

func readEvent(t *testing.T, e *goical.Component, zones map[string]zone, end time.Time) (list []time.Time) {
	t.Helper()
	start := e.Props.Get(goical.PropDateTimeStart)
	z := zones[start.Params.Get(goical.ParamTimezoneID)]
	if z == nil {
		t.Fatalf("no VTIMEZONE for %v", start)
	}
	except := map[time.Time]bool{}
	for _, p := range e.Props.Values(goical.PropExceptionDates) {
		except[stamp(t, p.Value)] = true
	}
	walls := []time.Time{stamp(t, start.Value)}
	if p := e.Props.Get(goical.PropRecurrenceRule); p != nil {
		o, err := rrule.StrToROption(p.Value)
		if err != nil {
			t.Fatal(err)
		}
		o.Dtstart = walls[0]
		if !o.Until.IsZero() {
			o.Until = z.wall(o.Until)
		}
		rule, err := rrule.NewRRule(*o)
		if err != nil {
			t.Fatal(err)
		}
		for next := rule.Iterator(); ; {
			w, ok := next()
			if !ok || w.After(end.Add(48*time.Hour)) {
				break
			}
			walls = append(walls, w)
		}
	}
	for _, w := range walls {
		if at := z.instant(w); !except[w] && !at.After(end) {
			list = append(list, at)
		}
	}
	for _, p := range e.Props.Values(goical.PropRecurrenceDates) {
		if at := stamp(t, p.Value); !at.After(end) {
			list = append(list, at)
		}
	}
	return list
}

func stamp(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(wall, strings.TrimSuffix(text, "Z"))
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// zone is the list of the onsets of a VTIMEZONE, in order.
type zone []onset

type onset struct {
	at     time.Time
	offset time.Duration
}

func readZone(t *testing.T, c *goical.Component) (z zone) {
	t.Helper()
	length := func(text string) time.Duration {
		at, err := time.Parse("-0700", text)
		if err != nil {
			t.Fatal(err)
		}
		_, s := at.Zone()
		return time.Duration(s) * time.Second
	}
	for _, o := range c.Children {
		before, after := length(o.Props.Get(goical.PropTimezoneOffsetFrom).Value), length(o.Props.Get(goical.PropTimezoneOffsetTo).Value)
		walls := []time.Time{stamp(t, o.Props.Get(goical.PropDateTimeStart).Value)}
		if p := o.Props.Get(goical.PropRecurrenceRule); p != nil {
			opt, err := rrule.StrToROption(p.Value)
			if err != nil {
				t.Fatal(err)
			}
			opt.Dtstart = walls[0]
			rule, err := rrule.NewRRule(*opt)
			if err != nil {
				t.Fatal(err)
			}
			walls = rule.Between(walls[0], walls[0].AddDate(30, 0, 0), true)
		}
		for _, p := range o.Props.Values(goical.PropRecurrenceDates) {
			walls = append(walls, stamp(t, p.Value))
		}
		for _, w := range walls {
			z = append(z, onset{w.Add(-before), after})
		}
	}
	slices.SortFunc(z, func(x, y onset) int { return x.at.Compare(y.at) })
	return z
}

// wall returns the wall time at an instant.
func (z zone) wall(at time.Time) time.Time {
	i := len(z) - 1
	for i > 0 && z[i].at.After(at) {
		i--
	}
	return at.Add(z[i].offset)
}

// instant returns the first instant at which the clock shows a wall time. For a wall time that the clock skips, it uses
// the offset before (RFC 5545 §3.3.5).
func (z zone) instant(w time.Time) time.Time {
	for i := range z {
		at := w.Add(-z[i].offset)
		if i+1 == len(z) || at.Before(z[i+1].at) || w.Add(-z[i+1].offset).Before(z[i+1].at) {
			return at
		}
	}
	return w
}
