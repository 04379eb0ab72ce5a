package rules

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/teambition/rrule-go"
)

var now = time.Date(2026, 11, 21, 10, 30, 17, 0, time.UTC)

// A rule of each frequency, as a user would write it.
var benchRules = []string{
	"FREQ=SECONDLY", "FREQ=SECONDLY;INTERVAL=90", "FREQ=MINUTELY", "FREQ=MINUTELY;INTERVAL=7", "FREQ=MINUTELY;BYHOUR=9,17;BYDAY=MO",
	"FREQ=HOURLY", "FREQ=HOURLY;INTERVAL=5", "FREQ=DAILY", "FREQ=DAILY;INTERVAL=3;BYHOUR=2;BYMINUTE=30", "FREQ=WEEKLY;BYDAY=MO,TH",
	"FREQ=WEEKLY;INTERVAL=2;BYDAY=TU", "FREQ=MONTHLY;BYMONTHDAY=-1", "FREQ=MONTHLY;INTERVAL=3;BYDAY=2FR", "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
	"FREQ=YEARLY", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO",
}

func benchRule(b testing.TB, zone, rule string, years int) *Rule {
	start := now.AddDate(-years, 0, -9).Format("20060102T150405")
	text := "DTSTART:" + start + "Z\nRRULE:" + rule
	if zone != "UTC" {
		text = "DTSTART;TZID=" + zone + ":" + start + "\nRRULE:" + rule
	}
	return mustParse(b, text, Defaults{})
}

// BenchmarkNext asks for the occurrence after a fixed instant.
func BenchmarkNext(b *testing.B) {
	for _, zone := range []string{"UTC", "Europe/Berlin"} {
		for _, rule := range benchRules {
			for _, years := range []int{1, 25} {
				r := benchRule(b, zone, rule, years)
				b.Run(fmt.Sprintf("%s/%s/%dy", zone, rule, years), func(b *testing.B) { benchNext(b, r) })
			}
		}
	}
}

func benchNext(b *testing.B, r *Rule) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Next(now); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for _, text := range []string{"*/15 9-17 * * MON-FRI", "0 0 1,15 * MON", "every 5m", "D -1 17:30", "daily at 08:00",
		benchRule(b, "Europe/Berlin", "FREQ=WEEKLY;BYDAY=MO,TH", 1).String()} {
		name, _, _ := strings.Cut(text, "\n")
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(text, Defaults{Zone: "Europe/Berlin"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkZone reads each zone once, as a new process does.
func BenchmarkZone(b *testing.B) {
	for b.Loop() {
		zones.Clear()
		if _, err := zoneNamed("Europe/Berlin"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCount(b *testing.B) {
	r := benchRule(b, "Europe/Berlin", "FREQ=SECONDLY;INTERVAL=7;BYMINUTE=0,30", 1)
	for b.Loop() {
		if _, err := r.Count(now.AddDate(-1, 0, 0), now); err != nil {
			b.Fatal(err)
		}
	}
}

// age is the factor by which 24 more years may slow Next down.

const age = 2

var table = flag.Bool("table", false, "measure, and print the table of ratios")

// The cost of Next does not grow with the rule's age, and nothing is allocated. With -table, the cost is measured and
// compared with the cost of other libraries. Without it, the number of steps of Next is compared, which other load does
// not change.
func TestNextDoesNotAge(t *testing.T) {
	for _, zone := range []string{"UTC", "Europe/Berlin"} {
		for _, rule := range benchRules {
			steps := [2]int{}
			for i, years := range []int{1, 25} {
				r := benchRule(t, zone, rule, years)
				b := budget{searchSteps}
				if _, ok := r.next(now.Unix()+1, &b); !ok {
					t.Fatalf("%s has no next occurrence", r)
				}
				steps[i] = searchSteps - b.left
				if n := testing.AllocsPerRun(100, func() { _, _ = r.Next(now) }); n > 0 {
					t.Errorf("%s in %s: %v allocations", rule, zone, n)
				}
			}
			if steps[1] > age*steps[0]+4 || steps[1] > 200 {
				t.Errorf("%s in %s: %d steps one year after its start, %d after 25", rule, zone, steps[0], steps[1])
			}
		}
	}
	if *table {
		printTable(t)
	}
}

// measure times functions in turn, and returns the best of many short rounds of each. Other work on the machine only
// adds to the time, and affects both sides of a ratio.
func measure(list ...func()) []time.Duration {
	const rounds, calls = 60, 200
	best := make([]time.Duration, len(list))
	for range rounds {
		for i, f := range list {
			begin := time.Now()
			for range calls {
				f()
			}
			if took := time.Since(begin) / calls; best[i] == 0 || took < best[i] {
				best[i] = took
			}
		}
	}
	return best
}

func printTable(t *testing.T) {
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprintln(w, "rule\tzone\tnext, 1 year\t25 years\tratio\tallocs\trrule-go After, 1 year\tratio")
	for _, zone := range []string{"UTC", "Europe/Berlin"} {
		for _, rule := range benchRules {
			young, old := benchRule(t, zone, rule, 1), benchRule(t, zone, rule, 25)
			both := measure(func() { _, _ = young.Next(now) }, func() { _, _ = old.Next(now) })
			a, b := both[0], both[1]
			fmt.Fprintf(w, "%s\t%s\t%v\t%v\t%.2f\t%.0f\t", rule, zone, a, b, float64(b)/float64(a), testing.AllocsPerRun(100, func() { _, _ = old.Next(now) }))
			if zone == "UTC" && !strings.HasPrefix(rule, "FREQ=SECONDLY") {
				other, err := rrule.StrToRRuleSet(young.String())
				if err != nil {
					t.Fatal(err)
				}
				begin := time.Now()
				other.After(now, false)
				took := time.Since(begin)
				fmt.Fprintf(w, "%v\t%.0f", took, float64(took)/float64(a))
			}
			fmt.Fprintln(w)
		}
	}
	fmt.Fprintln(w, "\ncron text\tzone\tours\trobfig/cron\tours/robfig\tparse ours\tparse robfig\tratio")
	for _, zone := range []string{"UTC", "Europe/Berlin"} {
		for _, text := range []string{"0 9 * * *", "30 2 * * *", "*/15 * * * *", "*/15 9-17 * * MON-FRI", "0 0 1,15 * MON", "0 0 1 1 *", "5 4 29 2 *"} {
			r := mustParse(t, text, Defaults{Zone: zone})
			other, err := cron.ParseStandard("CRON_TZ=" + zone + " " + text)
			if err != nil {
				t.Fatal(err)
			}
			m := measure(func() { _, _ = r.Next(now) }, func() { other.Next(now) },
				func() { _, _ = Parse(text, Defaults{Zone: zone}) }, func() { _, _ = cron.ParseStandard("CRON_TZ=" + zone + " " + text) })
			fmt.Fprintf(w, "%s\t%s\t%v\t%v\t%.2f\t%v\t%v\t%.2f\n", text, zone, m[0], m[1], float64(m[0])/float64(m[1]), m[2], m[3], float64(m[2])/float64(m[3]))
		}
	}
}
