package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// arity has the number of arguments of each routine that people call. On MySQL and MariaDB, a call has all of them.
// NULL stands for the default on every engine.
var arity = map[string]int{
	"create_schedule": 5, "alter_schedule": 3, "drop_schedule": 3, "drop_unused_schedules": 1,
	"create_job": 5, "alter_job": 3, "rename_job": 3, "drop_job": 2, "add_step": 6, "alter_step": 4, "drop_step": 3,
	"add_job_schedule": 3, "drop_job_schedule": 3, "pause": 4, "resume": 4, "enable": 2, "disable": 2, "abort": 3,
	"run_now": 5, "cancel": 2, "retry": 3, "take": 3, "extend": 3, "finish": 4,
}

// ofProgram are the routines that the program calls for an owner.
var ofProgram = map[string]int{"holds_own": 2, "end_own": 15}

// call is a call of a routine.
type call struct {
	name string
	args []any
}

func routine(name string, args ...any) call { return call{name, args} }

// text returns the call on an engine, with placeholders for all arguments.
func (c call) text(engine string) (string, []any) {
	args := slices.Concat(c.args, make([]any, cmp.Or(arity[c.name], ofProgram[c.name])-len(c.args)))
	holes := make([]string, len(args))
	for i := range holes {
		if holes[i] = "?"; storetest.Dialect(engine) == "postgres" {
			holes[i] = fmt.Sprintf("$%d", i+1)
		}
	}
	if storetest.Dialect(engine) == "postgres" {
		return fmt.Sprintf("SELECT * FROM dbjobs.%s(%s)", c.name, strings.Join(holes, ", ")), args
	}
	return fmt.Sprintf("CALL dbjobs_%s(%s)", c.name, strings.Join(holes, ", ")), args
}

func (c call) on(d *storetest.DB) error {
	text, args := c.text(d.Server)
	_, err := d.SQL.Exec(text, args...)
	return err
}

// TestReadmeCallsTheRoutines: the calls of the page have the promised effects, and its table has all routines with
// their arguments.
func TestReadmeCallsTheRoutines(t *testing.T) {
	section := readPage(t, databasePage).section("By functions")
	for _, engine := range withRoutines(t) {
		t.Run(engine, func(t *testing.T) {
			d := storetest.Open(t, engine, store.Options{Clock: time.Now})
			block := map[string]int{"postgres": 0, "mariadb": 1}[storetest.Dialect(engine)]
			for _, statement := range section.blocks()[block].statements() {
				d.Exec(t, statement)
			}
			var log strings.Builder
			changes, err := d.Changes(t.Context(), "", "", 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range slices.Backward(changes) {
				fmt.Fprintf(&log, "%s %s; ", c.Action, c.Kind)
			}
			if want := "create schedule; create job; pause job; resume job; run-now job; abort job; remove job; "; log.String() != want {
				t.Errorf("they did %q, want %q", log.String(), want)
			}
		})
	}
	named := map[string]bool{}
	for _, row := range section.rows("By functions") {
		names := regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(row[0], -1)
		lists := strings.Split(regexp.MustCompile(`\([^)]*\)`).ReplaceAllString(row[1], ""), "; ")
		for i, m := range names {
			named[m[1]] = true
			if n := len(strings.Split(lists[min(i, len(lists)-1)], ", ")); arity[m[1]] != 0 && n != arity[m[1]] {
				t.Errorf("%s names %d arguments of %s, which has %d", databasePage, n, m[1], arity[m[1]])
			}
		}
	}
	for name := range arity {
		if !named[name] {
			t.Errorf("%s does not name %s", databasePage, name)
		}
	}
}

// TestRoutinesKnowEachPolicy: for each key of a file, apply with that key and create_job with that key among its
// options make the same job.
func TestRoutinesKnowEachPolicy(t *testing.T) {
	t.Parallel()
	beside := map[string]string{"max_running": `"overlap": "allow"`, "missed_limit": `"missed": "all"`, "missed_grace": `"missed": "skip"`, "remove_when_done": `"rule": "every 1h"`,
		"retry.max_backoff": `"queue": "q"`}
	texts := map[string]string{"group": "few", "queue": "reports", "description": "it's \"quoted\" & <odd>"}
	for _, engine := range withRoutines(t) {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			applied, called := storetest.Open(t, engine, store.Options{Clock: time.Now}), storetest.Open(t, engine, store.Options{Clock: time.Now})
			for _, d := range []*storetest.DB{applied, called} {
				d.Exec(t, "INSERT INTO "+d.Table("groups")+" (name, max_running) VALUES ('few', 2)")
				if err := routine("create_job", "tidy", "SELECT 1").on(d); err != nil {
					t.Fatal(err)
				}
			}
			known := 0
			for i, p := range store.Policies() {
				if p.Key == "owner" || p.Key == "start_zone" || p.Key == "start" { // apply resolves a start at once, and a routine leaves this to a decision
					continue
				}
				var value any
				switch p.Of(&store.Job{}).(type) {
				case *string:
					switch outer, _, _ := strings.Cut(p.Key, "."); {
					case p.Allowed != nil:
						value = p.Allowed[len(p.Allowed)-1]
					case outer == "on":
						value = "tidy"
					case outer == "heartbeat":
						value = "https://example.org/" + p.Key
					default:
						value = texts[p.Key]
					}
				case *[]string:
					value = []string{"b", "a"}
				case *[]store.After:
					value = "tidy"
				case *int, *int64, **store.Attempts:
					value = 7
				case **int:
					value = 30
				case *bool:
					value = true
				case *time.Time:
					value = "2090-01-01T00:00:00.5Z"
				default:
					value = "2h30m1.5s"
				}
				outer, inner, nested := strings.Cut(p.Key, ".")
				if nested {
					value = map[string]any{inner: value}
				}
				text, err := json.Marshal(map[string]any{outer: value})
				if err != nil {
					t.Fatal(err)
				}
				options := string(text)
				if more := beside[p.Key]; more != "" {
					options = strings.TrimSuffix(options, "}") + ", " + more + "}"
				}
				name := fmt.Sprintf("job %d", i)
				file := fmt.Sprintf(`{"jobs": {%q: %s, "sql": "SELECT 1"}}}`, name, strings.TrimSuffix(options, "}"))
				if code, stderr := invoke(t.Context(), t, t.TempDir(), strings.NewReader(file), io.Discard, "apply", "-f", "-", "--database", applied.URL); code != exitDone {
					t.Fatalf("%s: code %d: %s", file, code, stderr)
				}
				if err := routine("create_job", name, "SELECT 1", nil, options).on(called); err != nil {
					t.Errorf("%s: %v", options, err)
				}
				known++
			}
			if want, is := contentOf(t, applied), contentOf(t, called); want != is {
				t.Errorf("apply leaves\n%s\ncreate_job leaves\n%s", onlyIn(want, is), onlyIn(is, want))
			}
			if known < 35 {
				t.Errorf("%d keys", known)
			}
		})
	}
}

// withRoutines returns the engines that have routines.
func withRoutines(t *testing.T) []string {
	return slices.DeleteFunc(slices.Clone(storetest.Engines(t)), func(e string) bool { return e == "sqlite" })
}

// TestRoutinesDoWhatCommandsDo: each command runs on one database, and the corresponding routine on another. Then the
// definitions, the change log, the runs and the plans are the same, also after the next passes. The rules have few times, so
// that none comes between a pass over the one database and that over the other.
func TestRoutinesDoWhatCommandsDo(t *testing.T) {
	type step struct {
		command string
		routine call
		refused bool
	}
	later := time.Date(2090, 1, 1, 0, 0, 0, 0, time.UTC)
	both := func(command string) step { return step{command: command} }
	as := func(command, name string, args ...any) step {
		return step{command: command, routine: routine(name, args...)}
	}
	refused := func(command, name string, args ...any) step { return step{command, routine(name, args...), true} }
	session := []step{
		as(`schedule create nightly --rule|0 2 * * *|--zone Europe/Berlin --description|at night`, "create_schedule", "nightly", "0 2 * * *", "Europe/Berlin", `{"description": "at night"}`),
		as(`schedule create often --rule|every 12h`, "create_schedule", "often", "every 12h"),
		as(`schedule create weekdays --rule|0 6 * * MON-FRI|--calendar bank --on-holiday next --nonexistent skip --ambiguous last`, "create_schedule", "weekdays", "0 6 * * MON-FRI", nil,
			`{"calendar": "bank", "on_holiday": "next", "nonexistent": "skip", "ambiguous": "last"}`),
		as(`job create load --sql|SELECT 1|--rule|every 6h|--zone Europe/Berlin --tag b --tag a --timeout 1h30m --attempts 3 --reason|it is needed`,
			"create_job", "load", "SELECT 1", "every 6h", `{"zone": "Europe/Berlin", "tags": ["b", "a"], "timeout": "1h30m", "retry": 2}`, "it is needed"),
		as(`job create clean --sql|SELECT 2|--schedule nightly --schedule weekdays --on-failed load`, "create_job", "clean", "SELECT 2", nil, `{"schedules": ["weekdays", "nightly"], "on": {"failed": "load"}}`),
		as(`job create then --sql|SELECT 3|--after load --atomic`, "create_job", "then", "SELECT 3", nil, `{"after": "load", "atomic": true}`),
		as(`job create both --sql|SELECT 4|--after load --after|{job: clean, on: end}`, "create_job", "both", "SELECT 4", nil, `{"after": ["load", {"job": "clean", "on": "end"}]}`),
		as(`job create one --sql|DELETE FROM carts WHERE state = ?|--arg|paid|--atomic`, "create_job", "one", "DELETE FROM carts WHERE state = ?", nil, `{"args": ["paid"], "atomic": true}`),
		as(`job alter one --sql|DELETE FROM old_carts WHERE state = ?`, "alter_job", "one", `{"sql": "DELETE FROM old_carts WHERE state = ?"}`), // what the step has beside it, stays
		as(`job alter one --arg|old`, "alter_job", "one", `{"args": ["old"]}`),
		as(`job alter one --sql|DELETE FROM old_carts|--reset arg --reset atomic`, "alter_job", "one", `{"sql": "DELETE FROM old_carts", "args": null, "atomic": null}`),
		refused(`job alter one --timeout never --atomic`, "alter_job", "one", `{"timeout": "never", "atomic": true}`),
		as(`job remove one`, "drop_job", "one"),
		refused(`job alter both --after load --after load`, "alter_job", "both", `{"after": ["load", "load"]}`),
		both(`tick`),
		as(`job alter load --rule|every 8h|--timeout 90s --backoff 1.5s --reset tag`, "alter_job", "load", `{"rule": "every 8h", "timeout": "90s", "retry": {"backoff": "1.5s"}, "tags": null}`),
		as(`job alter load --timeout 90s`, "alter_job", "load", `{"timeout": "1m 30s"}`), // nothing changes
		refused(`job alter load --timeout never`, "alter_job", "load", `{"timeout": "never"}`),
		refused(`job alter load --priorty 5`, "alter_job", "load", `{"priorty": 5}`),
		refused(`job alter load --priority 5 --reason|`+strings.Repeat("x", 1001), "alter_job", "load", `{"priority": 5}`, strings.Repeat("x", 1001)),
		as(`job alter clean --priority 5 --overlap allow --max-running 2 --description|cleans up`, "alter_job", "clean", `{"priority": 5, "overlap": "allow", "max_running": 2, "description": "cleans up"}`),
		both(`job create begin --sql|SELECT 8|--repeat-after 6h --start|daily at 08:00|--start-zone Europe/Berlin`),
		refused(`job alter begin --missed skip --missed-grace 0s`, "alter_job", "begin", `{"missed": "skip", "missed_grace": "0s"}`),
		as(`job alter begin --reset start`, "alter_job", "begin", `{"start": null}`),
		as(`job alter then --reset after`, "alter_job", "then", `{"after": null}`),
		both(`tick`),
		as(`job step add then --name last --sql|SELECT 5|--timeout 5m --attempts 2`, "add_step", "then", "last", "SELECT 5", `{"timeout": "5m", "retry": 1}`),
		as(`job step add then --name first --sql|SELECT 6|--on-failure next --before|step 1`, "add_step", "then", "first", "SELECT 6", `{"on_failure": "next"}`, "step 1"),
		refused(`job step add then --name last --sql|SELECT 5`, "add_step", "then", "last", "SELECT 5"), // it is there already
		as(`job step alter then last --reset timeout --backoff 2s`, "alter_step", "then", "last", `{"timeout": null, "retry": {"backoff": "2s"}}`),
		as(`job step alter then|step 1|--sql|SELECT 7`, "alter_step", "then", "step 1", `{"sql": "SELECT 7"}`),
		as(`job step drop then first`, "drop_step", "then", "first"),
		as(`job schedule add then often`, "add_job_schedule", "then", "often"),
		both(`tick`),
		as(`job schedule drop clean weekdays`, "drop_job_schedule", "clean", "weekdays"),
		as(`job schedule drop load|every 8h`, "drop_job_schedule", "load", "every 8h"),
		both(`tick`),
		as(`schedule alter weekdays --rule|0 7 * * MON-FRI|--reset calendar --reset on-holiday --zone Asia/Tokyo`, "alter_schedule", "weekdays", `{"rule": "0 7 * * MON-FRI", "calendar": null, "on_holiday": null, "zone": "Asia/Tokyo"}`),
		as(`job rename load fetch`, "rename_job", "load", "fetch"),
		as(`job pause fetch --reason|the vendor asked`, "pause", "fetch", nil, nil, "the vendor asked"),
		refused(`job pause --tag x`, "pause", "x", "tag"),
		as(`schedule pause often`, "pause", "often", "schedule"),
		as(`freeze --until 2090-01-01T00:00:00Z`, "pause", nil, "all", later),
		both(`tick`),
		as(`unfreeze --missed`, "resume", nil, "all", true),
		as(`schedule resume often`, "resume", "often", "schedule"),
		as(`job resume fetch`, "resume", "fetch"),
		as(`job disable both`, "disable", "both"),
		as(`job enable both --reason|again`, "enable", "both", "again"),
		as(`job run-now fetch --arg day=1 --key k1`, "run_now", "fetch", `{"day": "1"}`, nil, "k1"),
		as(`job run-now fetch --key k1`, "run_now", "fetch", nil, nil, "k1"),
		refused(`job run-now fetch --key|k1 `, "run_now", "fetch", nil, nil, "k1 "),
		as(`job run-now fetch --at 2090-01-01T00:00:00Z`, "run_now", "fetch", nil, later),
		refused(`run cancel fetch`, "cancel", "fetch"), // two runs are open
		both(`tick`),
		as(`run cancel fetch`, "cancel", "fetch"),
		both(`tick`),
		as(`run retry fetch#2`, "retry", "fetch#2"),
		refused(`run retry fetch#1`, "retry", "fetch#1"), // it has succeeded
		as(`job run-now both`, "run_now", "both"),
		as(`job abort both --reason|stop`, "abort", "both", nil, "stop"),
		both(`tick`),
		refused(`job remove fetch`, "drop_job", "fetch"), // others run after it
		as(`job pause both`, "pause", "both"),
		as(`job remove both`, "drop_job", "both"),
		refused(`job remove fetch`, "drop_job", "fetch"), // it is the hook of clean
		as(`job alter clean --reset on-failed`, "alter_job", "clean", `{"on": {"failed": null}}`),
		as(`job remove fetch`, "drop_job", "fetch"),
		refused(`schedule remove nightly`, "drop_schedule", "nightly"), // it is used
		as(`schedule pause nightly`, "pause", "nightly", "schedule"),
		as(`schedule pause weekdays`, "pause", "weekdays", "schedule"),
		both(`job create brief --sql|SELECT 9|--schedule nightly --start|at 2090-12-01T17:30:00|--remove-when-done`),
		both(`job create brief2 --sql|SELECT 9|--schedule nightly --rule|at 2090-12-01T17:30:00|--remove-when-done`),
		as(`schedule remove nightly --detach`, "drop_schedule", "nightly", true),
		as(`schedule remove --unused`, "drop_unused_schedules"),
		both(`tick`),
	}
	t.Parallel()
	for _, engine := range withRoutines(t) {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			commanded, called := storetest.Open(t, engine, store.Options{Clock: time.Now}), storetest.Open(t, engine, store.Options{Clock: time.Now})
			for _, d := range []*storetest.DB{commanded, called} {
				d.Exec(t, "INSERT INTO "+d.Table("calendars")+" (name, working_days, days) VALUES ('bank', 'MO-FR', '2026-12-25 Christmas Day\n\n 12-31\t\n')")
			}
			home := t.TempDir()
			dbjobs := func(d *storetest.DB, command string) error {
				code, stderr := invoke(t.Context(), t, home, nil, io.Discard, append(commandWords(command), "--database", d.URL)...)
				if code != exitDone {
					return fmt.Errorf("code %d: %s", code, stderr)
				}
				return nil
			}
			for _, s := range session {
				again := func() error { return s.routine.on(called) }
				if s.routine.name == "" {
					again = func() error { return dbjobs(called, s.command) }
				}
				expected, got := dbjobs(commanded, s.command), again()
				if (expected != nil) != s.refused || (got != nil) != s.refused {
					t.Fatalf("%s: the command says %v\n%v says %v", s.command, expected, s.routine, got)
				}
				if want, is := contentOf(t, commanded), contentOf(t, called); want != is {
					t.Fatalf("%s: the command leaves\n%s\n%v leaves\n%s", s.command, onlyIn(want, is), s.routine, onlyIn(is, want))
				}
			}
			if n := called.Int(t, "SELECT COUNT(*) FROM "+called.Table("changes")); n < 30 {
				t.Errorf("the change log has %d rows", n)
			}
		})
	}
}

// TestRoutinesReadNullAsTheDefault: a zone that is null is the default, also for a start, which has the zone of the rule.
func TestRoutinesReadNullAsTheDefault(t *testing.T) {
	for _, engine := range withRoutines(t) {
		t.Run(engine, func(t *testing.T) {
			d := storetest.Open(t, engine, store.Options{Clock: time.Now})
			for i, zone := range []string{`"rule": {"rule": "0 3 * * *", "zone": null}`, `"rule": "0 3 * * *", "zone": null`} {
				err := routine("create_job", fmt.Sprint("job ", i), "SELECT 1", nil, `{`+zone+`, "start": "daily at 18:00"}`).on(d)
				if err != nil {
					t.Fatal(err)
				}
			}
			if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("jobs")+" WHERE start_zone = 'UTC'"); n != 2 {
				t.Errorf("%d of 2 jobs have the start zone UTC", n)
			}
		})
	}
}

// commandWords splits a command at blanks. If the command has bars, it splits at the bars, and at the blanks of the
// parts that begin with --.
func commandWords(command string) (list []string) {
	for i, part := range strings.Split(command, "|") {
		if i == 0 || strings.HasPrefix(part, "--") {
			list = append(list, strings.Fields(part)...)
		} else {
			list = append(list, part)
		}
	}
	return list
}

var (
	anInstant = regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?( \+0000 UTC|Z|\+00)?|\b\d{10}\.\d+`)
	anyUUID   = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
)

// contentOf returns the content of the tables, without the values that differ from one moment to the next.
func contentOf(t *testing.T, d *storetest.DB) string {
	t.Helper()
	var lines []string
	for _, table := range []string{"schedules", "calendars", "jobs", "steps", "job_schedules", "job_after", "groups", "pauses", "plans", "plan_rules", "job_ends", "runs", "gaps", "changes"} {
		rows, err := d.SQL.Query("SELECT * FROM " + d.Table(table))
		if err != nil {
			t.Fatal(err)
		}
		err = eachRow(t, rows, func(row []cell) {
			line := table
			for _, c := range row {
				if c.column == "holder" || c.column == "id" && table == "changes" { // MySQL skips numbers after statements of many rows
					continue
				}
				line += " " + c.column + "=" + c.plainText()
			}
			lines = append(lines, anyUUID.ReplaceAllString(anInstant.ReplaceAllString(line, "T"), "ID"))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// onlyIn returns the lines of a text that another text does not have.
func onlyIn(text, other string) string {
	has := strings.Split(other, "\n")
	return strings.Join(slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return slices.Contains(has, line) }), "\n")
}
