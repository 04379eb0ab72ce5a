package intake

import (
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

func read(t *testing.T, text string) Cron {
	t.Helper()
	c, err := ReadCron([5]string(strings.Fields(text)))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The behaviour of schedulers in Berlin on 2027-03-28, when 02:00 becomes 03:00, and on 2027-10-31, when 03:00 becomes
// 02:00. +2 marks the hours of summer time.
func TestModels(t *testing.T) {
	from := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	list, err := changes("Europe/Berlin", from)
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	for _, c := range []struct {
		line      string
		model     Model
		gap, fold string
	}{
		{"30 2 * * *", Vixie, "03:00+2", "02:30+2"},
		{"0,30 2 * * *", Vixie, "03:00+2 03:00+2", "02:00+2 02:30+2"},
		{"30 3 * * *", Vixie, "03:30+2", "03:30+1"},
		{"0 3 * * *", Vixie, "03:00+2", "03:00+1"},
		{"*/30 2 * * *", Vixie, "", "02:00+2 02:30+2 02:00+1 02:30+1"},
		{"0 */2 * * *", Vixie, "00:00+1 04:00+2 06:00+2", "00:00+2 02:00+2 02:00+1 04:00+1 06:00+1"},
		{"30 1-3 * * *", Vixie, "01:30+1 03:00+2 03:30+2", "01:30+2 02:30+2 03:30+1"},
		{"30 2 * * *", Plain, "", "02:30+2 02:30+1"},
		{"*/30 1-2 * * *", Plain, "01:00+1 01:30+1", "01:00+2 01:30+2 02:00+2 02:30+2 02:00+1 02:30+1"},
	} {
		line := read(t, c.line)
		for i, want := range []string{c.gap, c.fold} {
			var got []string
			for _, at := range line.runs(c.model, &list[i]) {
				off := list[i].before
				if at >= list[i].at {
					off = list[i].after
				}
				if wall := time.Unix(at+off, 0).UTC(); wall.Format(time.DateOnly) == list[i].date {
					got = append(got, wall.Format("15:04")+"+"+strconv.FormatInt(off/3600, 10))
				}
			}
			if g := strings.Join(got, " "); g != want {
				t.Errorf("%s, model %d, %s: %s, want %s", c.line, c.model, list[i].date, g, want)
			}
		}
	}
}

// Each night that differs is named, and the policy that keeps the scheduler's behaviour is chosen.
func TestNights(t *testing.T) {
	from := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		line                   string
		model                  Model
		nonexistent, ambiguous string
		notes                  []string
	}{
		{"30 2 * * *", Vixie, "", "", []string{"Clock change 2027-03-28 (02:00 becomes 03:00): cron runs it at 03:00 +02:00, dbjobs runs it at 03:30 +02:00."}},
		{"30 4 * * *", Vixie, "", "", nil},
		{"*/5 * * * *", Vixie, "", "", nil},
		{"30 2 * * *", Plain, store.NonexistentSkip, store.AmbiguousBoth, []string{
			"Clock change 2027-03-28 (02:00 becomes 03:00): cron does not run it then; nonexistent: skip, ambiguous: both keeps that (without: at 03:30 +02:00).",
			"Clock change 2027-10-31 (03:00 becomes 02:00): cron runs it a second time, at 02:30 +01:00; nonexistent: skip, ambiguous: both keeps that (without: once)."}},
	} {
		line := read(t, c.line)
		s := store.Schedule{Rule: c.line, Zone: "Europe/Berlin"}
		notes, err := line.Nights(&s, c.model, "cron", from)
		if err != nil || !slices.Equal(notes, c.notes) || s.Nonexistent != c.nonexistent || s.Ambiguous != c.ambiguous {
			t.Errorf("%s: %q %v, want %q; %q %q", c.line, notes, err, c.notes, s.Nonexistent, s.Ambiguous)
		}
	}
}

// A line that cron reads and the rule that it becomes have the same times, minute by minute, in four months.
func TestRuleIsTheLine(t *testing.T) {
	from := time.Date(2027, 12, 1, 0, 0, 0, 0, time.UTC)
	rnd := rand.New(rand.NewSource(1))
	lines := []string{"*/90 * * * *", "007 08 * * *", "0 0 * * FRI-SUN", "0 0 * * 5-7", "0 0 * * 7", "0 0 13 * 5", "0 0 */2 * 1", "0 0 1-7 * *",
		"0 0 31 * *", "0 0 */40 * *", "*/7,3 1-5/3,22 * jan-mar/2 mon,wed", "0 0 * * sun-tue", "0 0 * * 0-7", "0 0 * * */2", "0 0 * * 1-7/2"}
	ranges := [5][2]int{{0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 7}}
	for range 20 {
		var fields [5]string
		for i, r := range ranges {
			lo := r[0] + rnd.Intn(r[1]-r[0]+1)
			hi := lo + rnd.Intn(r[1]-lo+1)
			fields[i] = []string{"*", "*", "*/" + strconv.Itoa(1+rnd.Intn(r[1])), strconv.Itoa(lo), strconv.Itoa(lo) + "-" + strconv.Itoa(hi),
				strconv.Itoa(lo) + "-" + strconv.Itoa(hi) + "/" + strconv.Itoa(1+rnd.Intn(9)), strconv.Itoa(hi) + "," + strconv.Itoa(lo)}[rnd.Intn(7)]
		}
		lines = append(lines, strings.Join(fields[:], " "))
	}
	for _, text := range lines {
		c := read(t, text)
		rule, err := c.Rule([5]string(strings.Fields(text)))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		r, err := rules.Parse(rule, rules.Defaults{Seed: "x"})
		if err != nil {
			if !strings.Contains(err.Error(), "never") {
				t.Errorf("%s is %s: %v", text, rule, err)
			}
			continue
		}
		next := from.Add(-time.Minute)
		for minute := from; minute.Before(from.AddDate(0, 4, 0)); minute = minute.Add(time.Minute) {
			if !c.matches(minute.Unix() / 60) {
				continue
			}
			if next, err = r.Next(next); err != nil || !next.Equal(minute) {
				t.Errorf("%s is %s: at %v, want %v (%v)", text, rule, next, minute, err)
				break
			}
		}
	}
}

// A change at midnight leaves out times of the new day, and repeats times of the old one. Remarks name that day.
func TestDayOfAChange(t *testing.T) {
	got, err := Changes("Africa/Cairo", time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC))
	if want := []string{"2027-04-30 (00:00 becomes 01:00)", "2027-10-28 (00:00 becomes 23:00)"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}
