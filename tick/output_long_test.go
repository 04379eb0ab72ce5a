package tick_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// What the server of a job says may be longer than the memory of the pass, in which other jobs run: a value, a notice, an error, a
// row of COPY. Only what is kept of it takes memory. What is kept is the same as of a short one.
func TestOutputLongerThanTheMemory(t *testing.T) {
	storetest.Needs(t, "postgres") // elsewhere, the server bounds a row (max_allowed_packet), or is a part of the process
	d := storetest.Open(t, "postgres", store.Options{})
	const long = "repeat('é', 10000000)" // 20 MB
	step := func(text string) []store.Step { return []store.Step{ticktest.Step("", text)} }
	jobs := []store.Job{
		{Name: "row", Steps: step("SELECT 1 AS n, " + long + " AS big, NULL AS none, true AS yes, 'after' AS word UNION ALL SELECT 2, 'short', NULL, false, 'too'")},
		{Name: "wide", Steps: step("SELECT " + strings.Repeat(long+", ", 2) + "'last' AS word")},
		{Name: "notice", Steps: step("DO $$ BEGIN RAISE NOTICE '%', " + long + "; END $$")},
		{Name: "copy", Steps: step("COPY (SELECT " + long + ") TO STDOUT")},
		{Name: "error", Steps: step("DO $$ BEGIN RAISE EXCEPTION '%', " + long + " USING HINT = 'be brief'; END $$")},
		{Name: "atomic", Steps: []store.Step{ticktest.AtomicStep("SELECT "+long+" AS big", "SELECT 'after' AS word")}},
	}
	ticktest.Apply(t, d, store.Definitions{Jobs: jobs})
	for _, j := range jobs {
		ticktest.Request(t, d, j.Name)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := ticktest.Run(t, d)
	runtime.ReadMemStats(&after)
	if r.Succeeded != len(jobs)-1 || r.Failed != 1 {
		t.Errorf("%+v", r)
	}
	if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 40 {
		t.Errorf("the pass took %d MB of memory", got)
	}
	kept := strings.Repeat("é", 512) + "…"
	for name, want := range map[string]string{"row": `{"n": 1, "big": "` + kept + `", "none": null, "yes": true, "word": "after"}` + "\n" + `{"n": 2, "big": "short", "none": null, "yes": false, "word": "too"}`,
		"wide": `{"repeat": "` + kept + `", "repeat": "` + kept + `", "word": "last"}`, "notice": "NOTICE: ", "copy": "", "atomic": `{"big": "` + kept + `"}` + "\n" + `{"word": "after"}`} {
		if got := ticktest.LastRun(t, d, name).Tries[0].Output; !strings.HasPrefix(got, want) || len(got) > len(want)+1100 {
			t.Errorf("%s: the record has\n%.1500s", name, got)
		}
	}
	if e := ticktest.LastRun(t, d, "error"); !strings.HasPrefix(e.Tries[0].Error, "ERROR: ééé") || e.Tries[0].Hint != "be brief" || e.Tries[0].Code != "P0001" {
		t.Errorf("%.300s; %s, %s", e.Tries[0].Error, e.Tries[0].Hint, e.Tries[0].Code)
	}
}
