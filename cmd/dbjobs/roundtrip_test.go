package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/decide"
)

// TestExportAppliesWithoutAChange: export writes random definitions, apply reads them back without a change, and diff
// finds no difference. The definitions have each key of a job, a step, a schedule and a calendar. Some jobs and
// schedules got another name, and some jobs skip their next time. An SQLite database that applies the file exports the
// same, unless jobs belong to several logins.
func TestExportAppliesWithoutAChange(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		seed := rand.Uint64()
		if s := os.Getenv("DBJOBS_TEST_SEED"); s != "" {
			seed, _ = strconv.ParseUint(s, 10, 64)
		}
		t.Logf("DBJOBS_TEST_SEED=%d", seed)
		r := &random{Rand: rand.New(rand.NewPCG(seed, 0)), t: t, given: map[string]bool{}}
		manifests, jobs, skips := 10, 100, 0
		if d.Engine != "sqlite" || testing.Short() {
			manifests = 3 // and more until each key was used
		}
		for i := 0; i < manifests || len(r.missing()) > 0 && i < 5*manifests; i++ { // the last key may need several rounds
			name := fmt.Sprintf("m%d", i)
			r.logins = d.Store.Engine().KnowsLogins && i%2 == 0
			defs := r.definitions(name+" ", jobs)
			if _, err := d.Apply(t.Context(), defs, store.ApplyOptions{Manifest: name, Start: decide.Start}); err != nil {
				t.Fatal(err)
			}
			skips += r.rename(d, &defs)
			exported := dbjobs(t, d.URL, "", exitDone, "export", "--manifest", name)
			if n := strings.Count(exported, "\n    steps:") + strings.Count(exported, "\n    "); n < jobs {
				t.Fatalf("exported only\n%s", exported)
			}
			if got := dbjobs(t, d.URL, exported, exitDone, "diff", "-f", "-", "--prune"); got != "no difference\n" {
				t.Fatalf("%s", got)
			}
			if got := dbjobs(t, d.URL, exported, exitDone, "apply", "-f", "-", "--prune"); got != "no change\n" {
				t.Fatalf("%s", got)
			}
			if r.logins {
				continue // the jobs of other logins stay on the servers that have these
			}
			elsewhere := "sqlite:" + filepath.Join(t.TempDir(), "elsewhere.db")
			dbjobs(t, elsewhere, "", exitDone, "migrate")
			dbjobs(t, elsewhere, exported, exitDone, "apply", "-f", "-")
			if got := dbjobs(t, elsewhere, "", exitDone, "export", "--manifest", name); got != exported {
				t.Fatalf("another database exports\n%s\nand not\n%s", got, exported)
			}
		}
		if skips == 0 {
			t.Error("no job could skip its next time")
		}
		if keys := r.missing(); len(keys) > 0 {
			t.Errorf("these keys were never given: %q", keys)
		}
	})
}

// TestExportOfStepsWrittenBySQL: plain SQL may write the same step in several ways. The file that export writes of them changes
// nothing when it is applied, and a change of something else does not change the step.
func TestExportOfStepsWrittenBySQL(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		for i, spec := range []string{
			`{"sql": [{"text": "SELECT ?", "args": [1]}]}`, `{"sql": [{"text": "SELECT 1"}]}`, `{"sql": [{"text": "SELECT 1", "args": []}], "atomic": false}`,
			`{"sql": [{"text": "SELECT ?", "args": [1.0]}, "SELECT 2"], "fail_if": ""}`, `{"sql": ["SELECT ?"], "args": [[1], {"b": 1}]}`, `{"sql": ["SELECT ?"], "args": null}`,
		} {
			name := fmt.Sprint("job ", i)
			dbjobs(t, d.URL, "", exitDone, "job", "create", name, "--sql", "SELECT 1")
			d.Exec(t, "UPDATE "+d.Table("steps")+" SET spec = '"+spec+"' WHERE job_id = (SELECT id FROM "+d.Table("jobs")+" WHERE name = '"+name+"')")
		}
		exported := dbjobs(t, d.URL, "", exitDone, "export")
		if got := dbjobs(t, d.URL, exported, exitDone, "apply", "-f", "-"); got != "no change\n" {
			t.Errorf("%s\nis read as\n%s", exported, got)
		}
		if got := dbjobs(t, d.URL, "", exitDone, "job", "alter", "job 0", "--timeout", "5m"); strings.Contains(got, "steps") {
			t.Error(got)
		}
	})
}

// rename gives some jobs and schedules another name, and lets some jobs skip a time. It returns the number of jobs that
// can skip a time.
func (r *random) rename(d *storetest.DB, defs *store.Definitions) (skips int) {
	ctx, who := r.t.Context(), store.Author{By: "somebody"}
	for i := range defs.Jobs {
		if !r.chance(5) {
			continue
		}
		_, err := tick.SkipNext(ctx, d.Store, defs.Jobs[i].FullName(), "", 2, who)
		if _, refused := errors.AsType[*store.FieldError](err); err != nil && !refused { // such as a job without a schedule
			r.t.Fatal(err)
		} else if err == nil {
			skips++
		}
	}
	for i := range defs.Jobs {
		if j := &defs.Jobs[i]; r.chance(5) {
			if _, err := d.RenameJob(ctx, j.FullName(), j.Name+" later", store.AlterOptions{Author: who}); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	for i := range defs.Schedules {
		if s := &defs.Schedules[i]; r.chance(30) {
			if _, err := d.RenameSchedule(ctx, s.Name, s.Name+" later", store.AlterOptions{Author: who}); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	return skips
}

// dbjobs runs a command and returns its output.
func dbjobs(t *testing.T, url, stdin string, want int, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	values := map[string]string{"DBJOBS_DATABASE_URL": url, "HOME": t.TempDir()}
	env := func(name string) (string, bool) {
		return values[name], values[name] != ""
	}
	if code := run(context.Background(), args, strings.NewReader(stdin), &stdout, io.Writer(&stderr), env, nil); code != want {
		out := stdout.String()
		t.Fatalf("%q ended with %d: %s\n%s\nread\n%s", args, code, stderr.String(), out[:min(4000, len(out))], stdin[:min(2000, len(stdin))])
	}
	return stdout.String()
}
