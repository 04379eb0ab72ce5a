package lint

import (
	"fmt"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/store"
)

// after is a new manifest with a job for each rule, and one that runs after all of them.
func after(rules []string) Options {
	m := &manifest.Manifest{}
	last := store.Job{Name: "last"}
	for i, rule := range rules {
		name := fmt.Sprintf("job-%d", i)
		m.Jobs = append(m.Jobs, store.Job{Name: name, Own: &store.Schedule{Rule: rule, Zone: "UTC"}})
		last.After = append(last.After, store.After{Job: name})
	}
	m.Jobs = append(m.Jobs, last)
	return Options{Manifest: m, New: true, Now: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)}
}

// equal is n times the same rule.
func equal(n int) (list []string) {
	for range n {
		list = append(list, "0 * * * *")
	}
	return list
}

// distinct is n rules that have each full hour in common.
func distinct(n int) (list []string) {
	for i := 1; i < 59; i++ {
		for k := i + 1; k < 60 && len(list) < n; k++ {
			list = append(list, fmt.Sprintf("0,%d,%d * * * *", i, k))
		}
	}
	return list
}

// A job that runs after many others is examined with work that grows with their number, and not with that of their pairs. The
// allocations show how often rules are read.
func TestJoinsOfManyJobs(t *testing.T) {
	for name, rules := range map[string]func(int) []string{"equal": equal, "distinct": distinct} {
		allocated := func(n int) float64 {
			o := after(rules(n))
			return testing.AllocsPerRun(1, func() {
				if list := joins(o); len(list) > 0 {
					t.Errorf("%s: %v", name, list)
				}
			})
		}
		if few, many := allocated(50), allocated(400); many > 12*few {
			t.Errorf("%s rules: %.0f allocations for 50 jobs, and %.0f for 8 times as many", name, few, many)
		}
	}
}

// joins returns the texts of the warnings about jobs that have no time in common.
func joins(o Options) []string { return textsOf(o, NeverMeets) }

// textsOf returns the texts of the warnings about the job after several others that have a code.
func textsOf(o Options, code string) (list []string) {
	for _, w := range Of(o) {
		if w.Subject == "last" && w.Code == code {
			list = append(list, w.Text)
		}
	}
	return list
}

// The warning names the first two jobs that have no time in common, also behind many that have. Of very many, not all pairs are
// compared.
func TestJoinsFindTheFirstTwoApart(t *testing.T) {
	const text = "it runs after job-0 and %s, once for a time that both have, and they have none within 400 days"
	for _, c := range []struct {
		rules []string
		want  string
	}{
		{append(equal(1000), "30 5 * * *"), fmt.Sprintf(text, "job-1000")},
		{append(distinct(100), "30 5 * * *"), fmt.Sprintf(text, "job-100")},
		{append(distinct(600), "30 5 * * *"), ""},
	} {
		got := joins(after(c.rules))
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || got[0] != c.want) {
			t.Errorf("%d jobs: %q, want %q", len(c.rules), got, c.want)
		}
	}
}

// A job that has other times, too, may miss one that all have. The warning names it unless its policies make a run for each time.
func TestJoinsFindTheJobThatMayMissACommonTime(t *testing.T) {
	const hourly, daily, later = "0 * * * *", "0 0 * * *", "0 3 * * *"
	const text = "it runs after %s and %s, once for a time that both have, and a run of %[1]s that makes up for several times counts for the last of them alone"
	every := store.Job{Missed: store.MissedAll, Overlap: store.OverlapWaitAll}
	for name, c := range map[string]struct {
		rules    []string
		policies []store.Job // of the first jobs
		want     string
	}{
		"more times":             {[]string{hourly, daily}, nil, fmt.Sprintf(text, "job-0", "job-1")},
		"in another order":       {[]string{daily, hourly}, nil, fmt.Sprintf(text, "job-1", "job-0")},
		"each time":              {[]string{hourly, daily}, []store.Job{every}, ""},
		"each time beside":       {[]string{hourly, daily}, []store.Job{{Missed: store.MissedAll, Overlap: store.OverlapAllow}}, ""},
		"only in an outage":      {[]string{hourly, daily}, []store.Job{{Missed: store.MissedAll}}, fmt.Sprintf(text, "job-0", "job-1")},
		"only after a long run":  {[]string{hourly, daily}, []store.Job{{Overlap: store.OverlapWaitAll}}, fmt.Sprintf(text, "job-0", "job-1")},
		"the other of two equal": {[]string{hourly, hourly, daily}, []store.Job{every}, fmt.Sprintf(text, "job-1", "job-2")},
		"the same times":         {[]string{hourly, hourly}, nil, ""},
		"no common time":         {[]string{later, daily}, nil, ""}, // another warning says that
	} {
		o := after(c.rules)
		for i, p := range c.policies {
			o.Manifest.Jobs[i].Missed, o.Manifest.Jobs[i].Overlap = p.Missed, p.Overlap
		}
		got := textsOf(o, MayNotMeet)
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || got[0] != c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
