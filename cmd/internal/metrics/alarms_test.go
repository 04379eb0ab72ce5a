package metrics

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/tick"
)

// alarm is an alarm of the module, as CloudWatch evaluates it: over minutes, each of which has a value or none.
type alarm struct {
	metric, statistic, missing string
	threshold                  float64
	minutes, enough            int // the number of minutes that are examined, and how many of them have to be above the threshold
}

var (
	entry = regexp.MustCompile(`(?m)^    ([a-z-]+) = \{\n((?:      .+\n)+)    \}$`)
	field = regexp.MustCompile(`(?m)^      (\w+) += (.+)$`)
)

// readAlarms reads the alarms that use our figures, with the default of each input.
func readAlarms(t *testing.T) map[string]alarm {
	t.Helper()
	text, err := os.ReadFile("../../../terraform/aws/alarms.tf")
	if err != nil {
		t.Fatal(err)
	}
	variables, err := os.ReadFile("../../../terraform/aws/variables.tf")
	if err != nil {
		t.Fatal(err)
	}
	number := func(expression string) float64 {
		expression, seconds := strings.CutPrefix(expression, "60 * ")
		expression = strings.Replace(expression, "local.no_tick", "var.no_tick", 1) // without alarms for the next due time, they are the same
		if name, ok := strings.CutPrefix(expression, "var."); ok {
			m := regexp.MustCompile(`variable "` + name + `" \{\n(?:  .+\n)*?  default +=  ?(\d+)\n`).FindStringSubmatch(string(variables))
			if m == nil {
				t.Fatalf("the input %s has no default", name)
			}
			expression = m[1]
		}
		n, err := strconv.ParseFloat(expression, 64)
		if err != nil {
			t.Fatal(err)
		}
		if seconds {
			n *= 60
		}
		return n
	}
	if !strings.Contains(string(text), "\n  period              = 60\n") || !strings.Contains(string(text), `datapoints_to_alarm = each.key == "lost" ? 1 : each.value.minutes`) {
		t.Fatal("the alarms have another period, or want other points: this test evaluates them by the minute")
	}
	alarms := map[string]alarm{}
	for _, e := range entry.FindAllStringSubmatch(string(text), -1) {
		f := map[string]string{}
		for _, m := range field.FindAllStringSubmatch(e[2], -1) {
			value, _, _ := strings.Cut(strings.TrimPrefix(m[2], "var.metrics ? "), " : ") // metrics are on
			f[m[1]], _, _ = strings.Cut(strings.ReplaceAll(value, `"`, ""), " # ")
		}
		if f["namespace"] != Namespace {
			continue
		}
		if f["dimensions"] != "{ name = var.name }" || f["comparison"] != "GreaterThanThreshold" {
			t.Errorf("%s: dimensions %s, comparison %s", e[1], f["dimensions"], f["comparison"])
		}
		a := alarm{metric: f["metric"], statistic: f["statistic"], missing: f["missing"], threshold: number(f["threshold"]), minutes: int(number(f["minutes"]))}
		if a.enough = a.minutes; e[1] == "lost" {
			a.enough = 1
		}
		alarms[e[1]] = a
	}
	return alarms
}

// changes evaluates the alarm over the figures of each minute, which are nil if there was no pass. It returns the
// minutes at which the alarm went on and off. At the beginning, there has been no trouble for a long time.
func (a alarm) changes(passes []*Pass) (at []int) {
	on := false
	for now := range passes {
		above, known := 0, false
		for i := now - a.minutes + 1; i <= now; i++ {
			value, there := 0.0, i < 0 // before the first minute there was no trouble
			if i >= 0 && passes[i] != nil {
				value, there = passes[i].value(a.metric)
			}
			switch {
			case there:
				known = true
				if value > a.threshold {
					above++
				}
			case a.missing == "breaching":
				above++
			}
		}
		if a.missing == "ignore" && !known {
			continue
		}
		if next := above >= a.enough; next != on {
			on, at = next, append(at, now)
		}
	}
	return at
}

// value returns a figure as CloudWatch gets it. With one pass a minute, every statistic is the figure's value.
func (p *Pass) value(name string) (float64, bool) {
	for _, f := range p.figures() {
		if f.name == name {
			switch v := f.value.(type) {
			case int:
				return float64(v), true
			case float64:
				return v, true
			}
		}
	}
	return 0, false
}

// TestAlarmsNameFigures: the program writes the figures that the Terraform modules watch.
func TestAlarmsNameFigures(t *testing.T) {
	well := quiet(0)
	var names []string
	for _, f := range well.figures() {
		names = append(names, f.name)
	}
	alarms := readAlarms(t)
	if len(alarms) != 7 {
		t.Errorf("%d alarms look at figures: %v", len(alarms), alarms)
	}
	for name, a := range alarms {
		if !slices.Contains(names, a.metric) {
			t.Errorf("%s: there is no figure %s", name, a.metric)
		}
	}
	policies, err := os.ReadFile("../../../terraform/gcp/alerts.tf")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`figure = "(\w+)"`).FindAllStringSubmatch(string(policies), -1)
	if len(found) != 6 {
		t.Errorf("alerts on %q", found)
	}
	for _, m := range found {
		if !slices.Contains(names, m[1]) {
			t.Errorf("terraform/gcp: there is no figure %s", m[1])
		}
	}
}

var began = time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)

// quiet returns the figures of a pass at a minute without trouble.
func quiet(minute int) *Pass {
	at := began.Add(time.Duration(minute) * time.Minute)
	return &Pass{Name: "dbjobs", Ended: at, Report: tick.Report{StartedAt: at, DueAt: at, LookedAt: at, States: true, Succeeded: 1, NextRun: at.Add(time.Minute)}}
}

// TestAlarmsFireAndAreSilent: each alarm goes on once for its trouble, ends with it, and stays silent for all other
// troubles. This is also true if a tick comes only each quarter of an hour, without figures between two ticks.
func TestAlarmsFireAndAreSilent(t *testing.T) {
	alarms := readAlarms(t)
	const long, from, to = 180, 45, 105 // minutes; the trouble begins and ends at a tick of both
	for _, c := range []struct {
		name    string
		trouble func(p *Pass)
		lasts   bool
		on      string // the alarm that goes on; empty: none
	}{
		{"all is well", func(*Pass) {}, true, ""},
		{"a job fails until it is mended", func(p *Pass) { p.Report.Failed, p.Report.FailingJobs = 1, 1 }, true, "failing"},
		{"a run is tried again", func(p *Pass) { p.Report.Waiting = 1 }, true, ""},
		{"a definition cannot be used", func(p *Pass) { p.Report.ParkedJobs = 2 }, true, "parked"},
		{"somebody pauses a job", func(p *Pass) { p.Report.Paused = 1 }, true, "paused"},
		{"somebody freezes everything", func(p *Pass) {
			p.Report.Frozen, p.Report.Paused = true, 1
			p.Report.OldestQueued, p.Report.OldestDue = p.Report.StartedAt.Add(-16*time.Minute), p.Report.StartedAt.Add(-16*time.Minute)
		}, true, "paused"},
		{"a queue without workers", func(p *Pass) { p.Report.OldestQueued = p.Report.StartedAt.Add(-16 * time.Minute) }, true, "queued"},
		{"a queue that is worked off", func(p *Pass) { p.Report.OldestQueued = p.Report.StartedAt.Add(-14 * time.Minute) }, true, ""},
		{"one run is lost", func(p *Pass) { p.Report.Lost = 1 }, false, "lost"},
		{"decisions come late", func(p *Pass) { p.Report.OldestDue = p.Report.StartedAt.Add(-16 * time.Minute) }, true, "overdue"},
		{"decisions come as late as ticks", func(p *Pass) { p.Report.OldestDue = p.Report.StartedAt.Add(-15 * time.Minute) }, true, ""},
		{"each pass fails", func(p *Pass) { *p = Pass{Name: p.Name, Ended: p.Ended, Failed: true} }, true, "no-tick"},
	} {
		for _, every := range []int{1, 15} {
			passes := make([]*Pass, long)
			for minute := 0; minute < long; minute += every {
				passes[minute] = quiet(minute)
				if minute == from || c.lasts && minute > from && minute < to {
					c.trouble(passes[minute])
				}
			}
			for name, a := range alarms {
				if name == "no-tick" {
					a.minutes = max(a.minutes, every+1) // the module needs more than the time between two ticks
					a.enough = a.minutes
				}
				at := a.changes(passes)
				if name != c.on && len(at) > 0 {
					t.Errorf("%s, each %d minutes: %s goes on and off at %v", c.name, every, name, at)
				}
				if name == c.on && (len(at) != 2 || at[0] < from || at[0] > from+a.minutes || at[1] < at[0]) {
					t.Errorf("%s, each %d minutes: %s goes on and off at %v", c.name, every, name, at)
				}
			}
		}
	}
}

// TestNoTickAlarms: when the trigger stops, one alarm goes on.
func TestNoTickAlarms(t *testing.T) {
	passes := make([]*Pass, 120)
	for minute := range passes {
		if minute < 30 || minute >= 60 {
			passes[minute] = quiet(minute)
		}
	}
	for name, a := range readAlarms(t) {
		if at := a.changes(passes); name == "no-tick" && !slices.Equal(at, []int{34, 60}) || name != "no-tick" && len(at) > 0 {
			t.Errorf("%s goes on and off at %v", name, at)
		}
	}
}

// TestAlarmsOfStatesStayDuringAnOutage: a pass that reaches no database knows nothing of the states in it. So no alarm of a state
// goes off, and none goes on.
func TestAlarmsOfStatesStayDuringAnOutage(t *testing.T) {
	passes := make([]*Pass, 120)
	for minute := range passes {
		p := quiet(minute)
		if minute >= 20 && minute < 100 {
			p.Report.OldestDue, p.Report.OldestQueued = p.Report.StartedAt.Add(-16*time.Minute), p.Report.StartedAt.Add(-16*time.Minute)
			p.Report.ParkedJobs, p.Report.FailingJobs, p.Report.Paused = 1, 1, 1
		}
		if minute >= 40 && minute < 80 {
			p = &Pass{Name: p.Name, Ended: p.Ended, Failed: true}
		}
		passes[minute] = p
	}
	for name, a := range readAlarms(t) {
		at := a.changes(passes)
		switch name {
		case "overdue", "queued", "parked", "failing", "paused":
			if len(at) != 2 || at[0] < 20 || at[0] > 20+a.minutes || at[1] < 100 {
				t.Errorf("%s goes on and off at %v", name, at)
			}
		}
	}
}

// TestFiguresCountFromWhenTheyWereRead: a pass, or the passes of tick --for, may take longer than what its figures count.
func TestFiguresCountFromWhenTheyWereRead(t *testing.T) {
	p := quiet(0)
	p.Report.DueAt, p.Report.OldestDue = began.Add(20*time.Minute), began.Add(10*time.Minute)
	p.Report.LookedAt, p.Report.OldestQueued, p.Report.NextRun = began.Add(time.Hour), began.Add(20*time.Minute), began.Add(90*time.Minute)
	for name, want := range map[string]float64{"late_seconds": 600, "queued_seconds": 2400, "next_due_seconds": 1800} {
		if got, _ := p.value(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}
