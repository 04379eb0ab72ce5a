package manifest_test

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
)

// Many jobs are read on all processors. The result is the same as one after the other: the jobs are in their order, and
// the same problems are in the same order.
func TestManyJobsAreReadAsOneAfterTheOther(t *testing.T) {
	const jobs = 1300
	for name, change := range map[string]func(i int) string{
		"well":     func(int) string { return "" },
		"problems": func(i int) string { return map[bool]string{true: ", retry: {attempts: x}, what: 1"}[i%500 == 99] },
		"too many": func(i int) string { return map[bool]string{true: ", colour: red"}[i > 600] },
		"twice":    func(i int) string { return map[bool]string{true: "}\n  job-3: {sql: SELECT 2"}[i == 1100] },
		"too much": func(int) string { return ", tags: *t" },
	} {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			text.WriteString("zone: Europe/Berlin\nx-tags: &t [" + strings.Repeat("a, ", map[bool]int{true: 400}[name == "too much"]) + "b]\n" +
				"defaults: {tags: [z, a], retry: {attempts: 3, backoff: 5s}, owner: ada}\nschedules: {nightly: 0 2 * * *}\njobs:\n")
			for i := range jobs {
				when := []string{"rule: 30 2 * * *", "schedule: nightly", "schedule: elsewhere", "rule: every 5m", "schedules: [nightly, other]"}[i%5]
				fmt.Fprintf(&text, "  job-%d: {%s, sql: SELECT %d, after: job-%d, renamed_from: old-%d%s}\n", i, when, i, (i+1)%jobs, i, change(i))
			}
			read := func(processors int) (*manifest.Manifest, error) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
				return manifest.Read([]manifest.Input{{Path: "jobs.yaml", In: strings.NewReader(text.String())}}, manifest.Options{Now: time.Unix(0, 0)})
			}
			one, problem := read(1)
			all, problems := read(4)
			if !reflect.DeepEqual(problem, problems) || !reflect.DeepEqual(one, all) || (problem == nil) != (name == "well") {
				t.Errorf("one after the other: %v; on all processors: %v", problem, problems)
			}
			if problem == nil && (len(all.Jobs) != jobs || len(all.Renames) != jobs || len(all.References()) != 2) {
				t.Error(len(all.Jobs), len(all.Renames), all.References())
			}
		})
	}
}
