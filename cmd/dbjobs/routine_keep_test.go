package main

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// TestRoutinesKeepWhatIsNotNamed: a start has the zone that it had, and a null within the spec of a step is a value.
func TestRoutinesKeepWhatIsNotNamed(t *testing.T) {
	for _, engine := range withRoutines(t) {
		t.Run(engine, func(t *testing.T) {
			d := storetest.Open(t, engine, store.Options{Clock: time.Now})
			spec := `{"url": "https://example.org", "json": {"end": null}}`
			for _, c := range []call{
				routine("create_job", "call", "SELECT 1", "0 3 * * *", `{"zone": "Europe/Berlin", "start": "daily at 18:00", "start_zone": "Asia/Tokyo"}`),
				routine("alter_job", "call", `{"start": "daily at 19:00"}`),
				routine("alter_step", "call", "step 1", `{"executor": "http", "spec": `+spec+`}`),
				routine("alter_step", "call", "step 1", `{"timeout": "5m"}`),
			} {
				if err := c.on(d); err != nil {
					t.Fatal(err)
				}
			}
			var zone, is string
			if err := d.SQL.QueryRow("SELECT j.start_zone, s.spec FROM "+d.Table("jobs")+" j JOIN "+d.Table("steps")+" s ON s.job_id = j.id").Scan(&zone, &is); err != nil {
				t.Fatal(err)
			}
			if zone != "Asia/Tokyo" {
				t.Errorf("the zone of the start is %s", zone)
			}
			if !strings.Contains(is, "null") {
				t.Errorf("%s became %s", spec, is)
			}
		})
	}
}

// TestRoutinesKeepTheNumbersOfOtherSteps: a change of one step leaves the others as they are, to the last digit.
func TestRoutinesKeepTheNumbersOfOtherSteps(t *testing.T) {
	for _, engine := range withRoutines(t) {
		t.Run(engine, func(t *testing.T) {
			d := storetest.Open(t, engine, store.Options{Clock: time.Now})
			pays := func(number string) store.Step {
				return store.Step{Name: "pays " + number, Executor: "sql", Spec: json.RawMessage(`{"sql": ["SELECT 1"], "args": [` + number + `]}`)}
			}
			job := store.Job{Name: "pay", Steps: []store.Step{pays("12345678901234567.89"), pays("12345678901234567.90"), pays("1.0")}}
			if _, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{job}}, store.ApplyOptions{}); err != nil {
				t.Fatal(err)
			}
			specs := func() (list []string) {
				rows, err := d.SQL.Query("SELECT spec FROM " + d.Table("steps") + " WHERE name LIKE 'pays %' ORDER BY position")
				if err != nil {
					t.Fatal(err)
				}
				defer rows.Close()
				for rows.Next() {
					var spec string
					if err := rows.Scan(&spec); err != nil {
						t.Fatal(err)
					}
					list = append(list, spec)
				}
				if err := rows.Err(); err != nil {
					t.Fatal(err)
				}
				return list
			}
			want := specs()
			for _, c := range []call{
				routine("add_step", "pay", "first", "SELECT 2", nil, "pays 12345678901234567.89"), routine("alter_step", "pay", "first", `{"timeout": "5m"}`),
				routine("alter_step", "pay", "pays 12345678901234567.90", `{"timeout": "5m"}`), routine("drop_step", "pay", "first"),
				routine("alter_step", "pay", "pays 12345678901234567.89", `{"name": "pays much"}`),
			} {
				if err := c.on(d); err != nil {
					t.Fatal(c, err)
				}
				if is := specs(); !slices.Equal(is, want) {
					t.Errorf("after %v: %q, want %q", c, is, want)
				}
			}
			if err := routine("alter_step", "pay", "pays 1.0", `{"args": [2]}`).on(d); err != nil {
				t.Fatal(err)
			}
			if is := specs(); slices.Equal(is, want) {
				t.Errorf("an argument that is another number: %q", is)
			}
			want = specs()
			if err := routine("add_step", "pay", "new", "SELECT 1", `{"args": [12345678901234567.88]}`).on(d); err != nil {
				t.Fatal(err)
			}
			if err := routine("alter_step", "pay", "pays much", `{"args": [12345678901234567.10]}`).on(d); err != nil {
				t.Fatal(err)
			}
			if is := specs(); is[0] == want[0] || is[1] != want[1] {
				t.Errorf("an argument that is nearly the same number: %q", is)
			}
			var is string
			if err := d.SQL.QueryRow("SELECT spec FROM " + d.Table("steps") + " WHERE name = 'new'").Scan(&is); err != nil || slices.Contains(want, is) {
				t.Errorf("a new step has the argument of another one: %s, %v", is, err)
			}
		})
	}
}

// TestAlterStepRoundsOnlyWhatItIsGiven: a call that changes nothing leaves the arguments of its step as they are written. A number that
// it gives is stored, and the change log says so, also where JSON of the server has both numbers as the same double.
func TestAlterStepRoundsOnlyWhatItIsGiven(t *testing.T) {
	for _, engine := range withRoutines(t) {
		t.Run(engine, func(t *testing.T) {
			d := storetest.Open(t, engine, store.Options{Clock: time.Now})
			spec := json.RawMessage(`{"sql": ["SELECT 1"], "args": [1.50, 12345678901234567.89]}`)
			job := store.Job{Name: "pay", Steps: []store.Step{{Name: "pays", Executor: "sql", Spec: spec}}}
			if _, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{job}}, store.ApplyOptions{}); err != nil {
				t.Fatal(err)
			}
			is := func() (spec string, changes int) {
				if err := d.SQL.QueryRow("SELECT spec FROM " + d.Table("steps")).Scan(&spec); err != nil {
					t.Fatal(err)
				}
				return spec, d.Int(t, "SELECT COUNT(*) FROM "+d.Table("changes"))
			}
			was, before := is()
			for _, options := range []string{`{"sql": "SELECT 1"}`, `{"sql": ["SELECT 1"], "atomic": false}`, `{"fail_if": null}`, `{"target": null}`, `{"timeout": null}`} {
				if err := routine("alter_step", "pay", "pays", options).on(d); err != nil {
					t.Fatal(options, err)
				}
				if now, changes := is(); now != was || changes != before {
					t.Errorf("after %s: %s and %d changes, want %s and %d", options, now, changes, was, before)
				}
			}
			if err := routine("alter_step", "pay", "pays", `{"args": [1.50, 12345678901234567.10]}`).on(d); err != nil {
				t.Fatal(err)
			}
			if now, changes := is(); now == was || changes != before+1 {
				t.Errorf("after another number: %s and %d changes, want %d", now, changes, before+1)
			}
			if err := routine("alter_step", "pay", "pays", `{"args": [1.50, 12345678901234567.10]}`).on(d); err != nil {
				t.Fatal(err)
			}
			if now, changes := is(); changes != before+1 {
				t.Errorf("after the same number: %s and %d changes, want %d", now, changes, before+1)
			}
		})
	}
}

// TestRoutinesCountAStartFromItsChange: a start counts from the call that changes it, or its zone before it has come, and not from the
// creation of the job. What the call leaves as it is keeps its instant, and so does a bound that somebody wrote.
func TestRoutinesCountAStartFromItsChange(t *testing.T) {
	for _, engine := range withRoutines(t) {
		t.Run(engine, func(t *testing.T) {
			d := storetest.Open(t, engine, store.Options{Clock: time.Now})
			bound := "2090-12-24T00:00:00Z"
			for _, c := range []call{routine("create_job", "import", "SELECT 1", "every 10m"), routine("create_job", "season", "SELECT 1", "every 10m", `{"not_before": "`+bound+`"}`)} {
				if err := c.on(d); err != nil {
					t.Fatal(err)
				}
			}
			tick := func() {
				t.Helper()
				if code, stderr := invoke(t.Context(), t, t.TempDir(), nil, io.Discard, "tick", "--database", d.URL); code != exitDone {
					t.Fatalf("code %d: %s", code, stderr)
				}
			}
			tick()
			d.Exec(t, "UPDATE "+d.Table("jobs")+" SET created_at = '2026-01-05 08:00:00'") // long ago
			alter := func(name, options string) time.Time {
				t.Helper()
				if err := routine("alter_job", name, options).on(d); err != nil {
					t.Fatal(err)
				}
				tick()
				j, err := d.Job(t.Context(), name)
				if err != nil {
					t.Fatal(err)
				}
				return j.NotBefore
			}
			monday := alter("import", `{"start": "W 1 7:30"}`)
			if !monday.After(time.Now()) {
				t.Errorf("it starts at %s", monday)
			}
			for _, same := range []string{`{"start": "W 1 7:30", "timeout": "5m"}`, `{"start": "W 1 7:30", "start_zone": "UTC", "priority": 3}`, `{"not_before": null}`} {
				d.Exec(t, "UPDATE "+d.Table("jobs")+" SET not_before = '2090-01-02 07:30:00' WHERE name = 'import'") // as of an earlier change
				if is := alter("import", same); is.Year() != 2090 {
					t.Errorf("%s: it starts at %s", same, is)
				}
			}
			if is := alter("import", `{"start_zone": "Asia/Tokyo"}`); is.Year() == 2090 || is.Hour() != 22 {
				t.Errorf("in another zone it starts at %s", is)
			}
			d.Exec(t, "UPDATE "+d.Table("jobs")+" SET not_before = '2026-01-05 22:30:00' WHERE name = 'import'")
			if is := alter("import", `{"start_zone": "UTC"}`); is.After(time.Now()) {
				t.Errorf("in another zone it starts again, at %s", is)
			}
			if err := routine("alter_job", "import", `{"not_before": "`+bound+`"}`).on(d); err == nil || !strings.Contains(err.Error(), "not_before") {
				t.Errorf("not_before beside a start: %v", err)
			}
			if is := alter("import", `{"start": null, "not_before": "`+bound+`"}`); is.Year() != 2090 {
				t.Errorf("in place of a start: %s", is)
			}
			if is := alter("season", `{"start": null, "timeout": "5m"}`); is.Format(time.RFC3339) != bound {
				t.Errorf("without a start: %s, want %s", is, bound)
			}
		})
	}
}
