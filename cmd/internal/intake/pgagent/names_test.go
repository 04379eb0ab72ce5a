package pgagent

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/intake"
	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/executor"
)

var today = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

// named is a job with a schedule for each of some days of the month.
func named(name string, days ...int) Job {
	j := Job{Name: name, Enabled: true, Steps: []Step{{Name: "a", Enabled: true, Kind: "s", Code: "SELECT 1"}}}
	for _, day := range days {
		s := Schedule{Name: "s", Enabled: true, Minutes: make([]bool, 60), Hours: make([]bool, 24), Weekdays: make([]bool, 7),
			Monthdays: make([]bool, 32), Months: make([]bool, 12)}
		s.Minutes[0], s.Hours[0], s.Monthdays[day-1] = true, true, true
		j.Schedules = append(j.Schedules, s)
	}
	return j
}

// Jobs of the same name, and jobs whose names look like those of schedules, have schedules of their own.
func TestNamesOfSchedules(t *testing.T) {
	long := strings.Repeat("x", 99)
	jobs := []Job{named("x", 1, 2), named("x", 3, 4), named("x-2", 5, 6), named("x 1", 7, 8), named("x", 9, 10), named(long, 11, 12), named(long, 13, 14)}
	for _, prefix := range []string{"", "p-"} {
		r := Convert(jobs, Options{Source: "pgAgent", Zone: "UTC", Now: today})
		written(t, r, today, prefix)
		rules := map[string]string{}
		for _, s := range r.Schedules {
			if rules[s.Name] != "" {
				t.Errorf("prefix %q: %q is given twice", prefix, s.Name)
			}
			rules[s.Name] = s.Rule
		}
		for i, item := range r.Items {
			for k, name := range item.Definition.Schedules {
				if want := fmt.Sprintf("0 0 %d * *", 2*i+k+1); rules[name] != want {
					t.Errorf("prefix %q: %s has the schedule %q with %q, want %q", prefix, item.Job, name, rules[name], want)
				}
			}
		}
		if got := r.Items[1].Definition.Schedules; !slices.Equal(got, []string{prefix + "x-2 1", prefix + "x-2 2"}) {
			t.Errorf("the names do not follow the name of the job: %q", got)
		}
	}
}

// A time of PostgreSQL may be infinite, or beyond the times of Go. It is no end then, or no begin.
func TestInfinity(t *testing.T) {
	for _, c := range []struct{ start, end, reason string }{
		{"2026-01-01T00:00:00+00:00", "infinity", ""},
		{"2026-01-01T00:00:00+00:00", "12026-01-01T00:00:00+00:00", ""},
		{"-infinity", "infinity", ""},
		{"0044-03-15T00:00:00+00:53:28 BC", "infinity", ""},
		{"0001-01-01T00:00:00+00:53:28", "infinity", ""},
		{"infinity", "infinity", "never begins"},
		{"-infinity", "-infinity", "is over"},
	} {
		for _, several := range []bool{false, true} {
			j := named("x", 1)
			text := fmt.Sprintf(`{"jscname": "s", "jscenabled": true, "jscstart": %q, "jscend": %q, "jscminutes": [true, false]}`, c.start, c.end)
			if err := json.Unmarshal([]byte(text), &j.Schedules[0]); err != nil {
				t.Fatal(text, err)
			}
			if several {
				j.Schedules = append(j.Schedules, named("x", 2).Schedules...)
			}
			r := Convert([]Job{j}, Options{Source: "pgAgent", Zone: "Europe/Berlin", Now: today})
			got := written(t, r, today, "")
			if c.reason != "" && !strings.Contains(got, c.reason) || strings.Contains(got, "is left out") != (c.reason != "") ||
				strings.Contains(got, "UNTIL") || strings.Contains(got, "DTSTART") || strings.Contains(got, "not_") {
				t.Errorf("%s, several %v:\n%s", text, several, got)
			}
		}
	}
	if err := json.Unmarshal([]byte(`{"jscstart": "soon"}`), new(Schedule)); err == nil {
		t.Error("a word is read as a time")
	}
	s := named("x", 1).Schedules[0]
	if err := json.Unmarshal([]byte(`{"jscstart": "-infinity", "jscend": null}`), &s); err != nil {
		t.Fatal(err)
	}
	s.Exceptions = []Exception{{Time: new("02:00:00")}}
	own, reason := schedule(&s, false, Options{Zone: "UTC", Now: today}, func(string, ...any) {})
	if reason != "" || !strings.HasPrefix(own.Rule, "DTSTART:19700101T000000\n") {
		t.Errorf("%q %s", own.Rule, reason)
	}
}

// A schedule of each minute may have many exceptions: a day takes no more room in its rule than a time.
func TestManyExceptions(t *testing.T) {
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	s := named("x", 1).Schedules[0]
	s.Minutes, s.Hours, s.Monthdays = nil, nil, nil
	for day := 1; day <= 28; day++ {
		s.Exceptions = append(s.Exceptions, Exception{Date: new(fmt.Sprintf("2027-02-%02d", day))})
	}
	s.Exceptions = append(s.Exceptions, Exception{Date: new("2027-03-01"), Time: new("00:00:00")})
	own, reason := schedule(&s, false, Options{Zone: "Europe/Berlin", Now: now}, func(string, ...any) {})
	if reason != "" {
		t.Fatalf("%.200s", reason)
	}
	r, err := rules.Parse(own.Rule, rules.Defaults{Zone: own.Zone})
	if err != nil {
		t.Fatal(err)
	}
	next, err := r.Next(time.Date(2027, 1, 31, 22, 59, 0, 0, time.UTC))
	if err != nil || next.Format(time.RFC3339) != "2027-02-28T23:01:00Z" {
		t.Errorf("%v, %v; want the second minute of March", next, err)
	}
}

// pgAgent runs a batch as a file, by the program that its first line names. Its line ends are those of Unix.
func TestBatch(t *testing.T) {
	for _, c := range []struct{ code, out, note string }{
		{"printf %s a\r\nprintf %s b\r\n", "ab", ""},
		{"#!/bin/sh -e\nfalse\necho on\n", "", ""},
		{"#!/bin/bash\njob=(\"it's\" b)\necho \"${job[0]}\" ${job[1]} ${#job[@]}\n", "it's b 2\n", ""},
		{"#! /usr/bin/env bash\r\n[[ a == a ]] && echo ${BASH_VERSION:+bash}\r\n", "bash\n", ""},
		{"job=a\necho ${job} '${job}'\n", "a ${job}\n", "The step a: ${ is written as $''{"},
		{"#!/bin/sh\nowner=b\necho \"${owner}\" ${attempt}\n", "b\n", "The step a: ${attempt} is written with a -"},
		{"#!/usr/bin/awk -f\nBEGIN { print }\n", "", "begins with #!/usr/bin/awk -f: "},
	} {
		var notes string
		made := batch(Step{Name: "a", Kind: "b", Code: c.code}, func(format string, args ...any) { notes += fmt.Sprintf(format, args...) })
		var spec executor.ProgramSpec
		if err := json.Unmarshal(made.Spec, &spec); err != nil {
			t.Fatal(err)
		}
		if made.Executor != "shell" || !strings.Contains(notes, c.note) || (notes == "") != (c.note == "") {
			t.Errorf("%q is %s with the remark %q", c.code, made.Executor, notes)
		}
		r := Convert([]Job{{Name: "x", Enabled: true, Steps: []Step{{Name: "a", Enabled: true, Kind: "b", Code: c.code}}}}, Options{Zone: "UTC", Now: today})
		if r.Finish(today, ""); r.Imported() != 1 {
			t.Errorf("%q is not imported: %s", c.code, r.Items[0].Reason)
		}
		if strings.Contains(c.code, "awk") {
			continue
		}
		out, err := exec.Command("/bin/sh", "-c", spec.Run[0]).CombinedOutput()
		if string(out) != c.out || (err != nil) != strings.Contains(c.code, "false") {
			t.Errorf("%q: %v, %q", spec.Run[0], err, out)
		}
	}
}

// The database of a connection string, with its server, decides about the target of its step. No other part of it is taken for one.
func TestDatabaseOfAConnection(t *testing.T) {
	for connect, want := range map[string]string{
		"dbname=stock password=geheim":                       "stock",
		"host=/run/postgresql dbname=stock":                  "stock",
		"host=db dbname=stock password=geheim":               "stock@db",
		"dbname = 'stock' hostaddr=192.0.2.7":                "stock@192.0.2.7",
		"host=db dbname=stock port=5433":                     "stock@db:5433",
		"dbname=stock port=5433":                             "stock@localhost:5433",
		"password='a dbname=geheim host=b' dbname=stock":     "stock",
		"password='a dbname=geheim b'":                       "another server",
		"postgresql://ann:geheim@db:5432/stock":              "stock@db",
		"postgresql://ann:geheim@db:5433/stock":              "stock@db:5433",
		"postgres://ann@db/other?dbname=stock&x=1&host=next": "stock@next",
		"postgresql://ann:gehe%ZZ@db/stock":                  "another server",
		"postgresql://ann:12/geheim@db/stock":                "another server",
		"postgresql://ann:12?geheim@db/stock":                "another server",
		"postgresql://ann:12#geheim@db/stock":                "another server",
		"host=db":                                            "@db",
	} {
		var notes string
		targets := intake.Targets{"stock": "of the agent"}
		targets[want] = "found"
		got := step(Step{Name: "a", Kind: "s", Code: "SELECT 1", Connect: connect}, map[string]bool{}, Options{Targets: targets},
			func(format string, args ...any) { notes += fmt.Sprintf(format, args...) })
		if !strings.Contains(string(got.Spec), `"target":"found"`) || strings.Contains(notes, "geheim") {
			t.Errorf("%s: got %s with the remark %q, want the database %q", connect, got.Spec, notes, want)
		}
	}
}

// A step whose error is to be ignored, or to count as success, fails no job: neither where another step follows, nor at the
// end.
func TestErrorsOfSteps(t *testing.T) {
	for onError, want := range map[string][2]string{"f": {"", ""}, "i": {store.StepNext, store.StepSucceed}, "s": {store.StepNext, store.StepSucceed}} {
		j := named("x", 1)
		j.Steps = []Step{
			{Name: "a", Enabled: true, Kind: "s", Code: "SELECT 1", OnError: onError},
			{Name: "b", Enabled: true, Kind: "b", Code: "true", OnError: onError},
			{Name: "c", Kind: "b", Code: "true", OnError: "f"},
		}
		r := Convert([]Job{j}, Options{Source: "pgAgent", Zone: "UTC", Now: today})
		written(t, r, today, "")
		steps := r.Items[0].Definition.Steps
		if got := [2]string{steps[0].OnFailure, steps[1].OnFailure}; len(steps) != 2 || got != want {
			t.Errorf("%s: on_failure is %q, want %q", onError, got, want)
		}
	}
}
