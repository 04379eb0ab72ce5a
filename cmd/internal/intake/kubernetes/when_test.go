package kubernetes

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/robfig/cron/v3"

	"github.com/dbjobs/dbjobs/rules"
)

// The rule of a schedule has the same times as the parser that Kubernetes uses.
func TestSchedulesAreThoseOfKubernetes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	ranges := [5][2]int{{0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 6}}
	item := func(i int) string {
		lo, hi := ranges[i][0], ranges[i][1]
		a := lo + r.IntN(hi-lo+1)
		b := a + r.IntN(hi-a+1)
		step := "/" + strconv.Itoa(1+r.IntN(hi))
		n := strconv.Itoa
		list := []string{"*", "*" + step, n(a), n(a) + step, n(a) + "-" + n(b), n(a) + "-" + n(b) + step, "?", "*/1", "?" + step}
		if i == 4 {
			list = append(list, "MON", "mon-fri", "Sun/2")
		}
		if i == 3 {
			list = append(list, "JAN", "mar-nov/3", "jun/2")
		}
		return list[r.IntN(len(list))]
	}
	read := 0
	for range 1500 {
		var fields []string
		for i := range 5 {
			f := item(i)
			for r.IntN(4) == 0 {
				f += "," + item(i)
			}
			fields = append(fields, f)
		}
		text := strings.Join(fields, " ")
		theirs, err := cron.ParseStandard(text)
		if err != nil {
			continue
		}
		own, err := when(text, "UTC", from, func(string, ...any) {})
		if err != nil {
			if !strings.Contains(err.Error(), "never") {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		rule, err := rules.Parse(own.Rule, rules.Defaults{})
		if err != nil {
			t.Fatal(err)
		}
		read++
		at := from
		for range 30 {
			want := theirs.Next(at)
			got, err := rule.Next(at)
			if want.IsZero() {
				break
			}
			if err != nil || !got.Equal(want) {
				t.Errorf("%s is %s: %v, want %v (%v)", text, own.Rule, got, want, err)
				break
			}
			at = want
		}
	}
	t.Log(read)
}

// Before its version 1.29, Kubernetes took a zone in the schedule of a new CronJob, and still heeds that of an old one.
func TestZoneInASchedule(t *testing.T) {
	for _, text := range []string{"TZ=America/New_York 30 5 * * MON", "CRON_TZ=Asia/Kolkata  0 */6 1 * ?", "TZ=Etc/UTC @daily", "TZ= 7 * * * *"} {
		theirs, err := cron.ParseStandard(text)
		if err != nil {
			t.Fatal(err)
		}
		own, err := when(text, "Europe/Berlin", from, func(string, ...any) {})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		rule, err := rules.Parse(own.Rule, rules.Defaults{Zone: own.Zone})
		if err != nil {
			t.Fatal(err)
		}
		at := from
		for range 30 {
			want := theirs.Next(at)
			if got, err := rule.Next(at); err != nil || !got.Equal(want) {
				t.Errorf("%s is %s in %s: %v, want %v (%v)", text, own.Rule, own.Zone, got, want, err)
				break
			}
			at = want
		}
	}
	if _, err := when("TZ=Europe/Berln 0 5 * * *", "UTC", from, func(string, ...any) {}); err == nil || !strings.Contains(err.Error(), "Europe/Berln") {
		t.Errorf("a zone that is none: %v", err)
	}
}

// A length of Kubernetes is read as Go reads it, and counts whole seconds.
func TestEvery(t *testing.T) {
	for schedule, want := range map[string]string{"@every 90m": "every 90m", "@every 1h30m": "every 90m", "@every 24h": "every 24h", "@every 1m30.5s": "every 90s",
		"@every 500ms": "every 1s", "@every -1h": "", "@every 1d": "", "@every": ""} {
		own, err := when(schedule, "UTC", from, func(string, ...any) {})
		if (err == nil) != (want != "") || err == nil && own.Rule != want {
			t.Errorf("%s: %+v, %v", schedule, own, err)
		}
	}
}

// An object of a list that is no CronJob, or has another form, leaves the CronJobs beside it as they are. What was due
// while a Job was active runs afterwards, unless there is a deadline.
func TestListWithAnOddObject(t *testing.T) {
	r, err := Read(`{kind: List, items: [{kind: Backup, metadata: {name: x}, spec: {schedule: {cron: 1}}}, {kind: CronJob, metadata: {name: bad}, spec: {suspend: [1]}},
		{kind: CronJob, metadata: {name: good}, spec: {schedule: "0 5 * * *", concurrencyPolicy: Forbid}},
		{kind: CronJob, metadata: {name: soon}, spec: {schedule: "0 5 * * *", concurrencyPolicy: Forbid, startingDeadlineSeconds: 60}}]}`, Options{From: from})
	if err != nil {
		t.Fatal(err)
	}
	r.Finish(from, "")
	var overlaps []string
	for _, item := range r.Items {
		if item.Definition != nil {
			overlaps = append(overlaps, item.Job+" "+item.Definition.Overlap)
		}
	}
	if len(r.Items) != 4 || strings.Join(overlaps, ", ") != "good wait, soon skip" {
		t.Errorf("%q of %+v", overlaps, r.Items)
	}
}
