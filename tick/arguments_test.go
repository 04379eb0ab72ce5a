package tick_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// places writes n placeholders as the engine has them.
func places(d *storetest.DB, n int) string {
	list := make([]string, n)
	for i := range list {
		if list[i] = "?"; d.Engine == "postgres" {
			list[i] = fmt.Sprintf("$%d", i+1)
		}
	}
	return strings.Join(list, ", ")
}

// An argument arrives with its value, whatever the type of the column: an instant as an instant, and as text in one
// form, and a number with all its digits. This holds with and without a transaction around it.
func TestArgumentsArriveWhole(t *testing.T) {
	columns := map[string]string{
		"postgres": "at timestamptz, wall timestamp, day date, at_text text, told text, attempt int, attempt_text text, big numeric(30), small numeric(10, 4), " +
			"yes boolean, missing int, doc jsonb, run uuid",
		"mariadb": "at datetime(6), wall datetime(6), day datetime, at_text text, told text, attempt int, attempt_text text, big decimal(30), small decimal(10, 4), " +
			"yes boolean, missing int, doc json, run char(36)",
		"sqlite": "at text, wall text, day text, at_text text, told text, attempt integer, attempt_text text, big text, small real, yes integer, missing integer, doc text, run text",
	}
	args := []any{"${scheduled_for}", "${scheduled_for}", "${scheduled_for}", "${scheduled_for}", "from ${interval_start} to ${interval_end}", "${attempt}", "${attempt}",
		json.Number("123456789012345678901234567890"), json.Number("-0.0001"), true, nil, `{"of": "${job}", "at": "${scheduled_for}"}`, "${run_id}"}
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects ("+columns[d.Engine]+")")
		insert := "INSERT INTO effects VALUES (" + places(d, len(args)) + ")"
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(),
			Steps: []store.Step{ticktest.StepWith(false, insert, args...), ticktest.StepWith(true, insert, args...)}}}})
		ticktest.Run(t, d)
		d.Clock.Add(5 * time.Minute)
		if r := ticktest.Run(t, d); r.Succeeded != 1 {
			t.Fatalf("%+v", r)
		}
		at := "2026-01-05T08:05:00.000000Z"
		text := map[string]string{"mariadb": "2026-01-05 08:05:00.000000"}[d.Engine]
		if text == "" {
			text = at
		}
		where := map[string]string{
			"postgres": "at = '2026-01-05 08:05:00+00' AND wall = '2026-01-05 08:05:00' AND day = '2026-01-05' AND yes AND doc ->> 'at' = '" + at + "'",
			"mariadb":  "at = TIMESTAMP'2026-01-05 08:05:00' AND wall = at AND day = at AND yes = 1 AND JSON_CONTAINS(doc, '\"" + at + "\"', '$.at')",
			"sqlite":   "at = '" + at + "' AND wall = at AND day = at AND yes = 1 AND doc ->> 'at' = '" + at + "'",
		}[d.Engine] + " AND at_text = '" + text + "' AND told = 'from 2026-01-05T08:00:00.000000Z to " + at + "' AND attempt = 1 AND attempt_text = '1' " +
			"AND big = " + map[string]string{"sqlite": "'123456789012345678901234567890'"}[d.Engine] + map[bool]string{true: "123456789012345678901234567890"}[d.Engine != "sqlite"] +
			" AND small = -0.0001 AND missing IS NULL AND run = (SELECT id FROM " + d.Table("runs") + ")"
		if n := d.Int(t, "SELECT count(*) FROM effects WHERE "+where); n != 2 {
			rows, err := d.SQL.Query("SELECT at, wall, day, at_text, told, attempt, attempt_text, big, small, yes, missing, doc, run FROM effects")
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			for rows.Next() {
				got := make([]any, len(args))
				for i := range got {
					got[i] = new(any)
				}
				if err := rows.Scan(got...); err != nil {
					t.Fatal(err)
				}
				var line []string
				for _, v := range got {
					line = append(line, fmt.Sprintf("%s", *v.(*any)))
				}
				t.Error(strings.Join(line, " | "))
			}
			if err := rows.Err(); err != nil {
				t.Error(err)
			}
			t.Fatalf("%d rows of 2 are as they should be", n)
		}
	})
}

// The arguments of a run that was started by hand reach the run unchanged, also from a client that writes its own JSON.
func TestArgumentsOfARequestArriveWhole(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (told varchar(100), also varchar(100))")
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{
			ticktest.StepWith(false, "INSERT INTO effects VALUES ("+places(d, 2)+")", "${args.list}", "${args.n}, ${args.list}, ${args.none}")}}}})
		ticktest.Request(t, d, "job")
		d.Exec(t, "UPDATE "+d.Table("runs")+` SET args = '{"list": [12345678901234567890, "x"], "n": 12345678901234567890, "none": null}'`)
		if r := ticktest.Run(t, d); r.Succeeded != 1 {
			t.Fatalf("%+v", r)
		}
		var told, also string
		if err := d.SQL.QueryRow("SELECT told, also FROM effects").Scan(&told, &also); err != nil {
			t.Fatal(err)
		}
		if want := []string{`[12345678901234567890,"x"]`, `12345678901234567890, [12345678901234567890,"x"], `}; !slices.Equal([]string{told, also}, want) {
			t.Errorf("%q, %q; want %q", told, also, want)
		}
	})
}

// Each statement of a list has its own arguments, with and without a transaction around them.
func TestArgumentsBelongToOneStatement(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (n int, told varchar(100))")
		insert := "INSERT INTO effects VALUES (" + places(d, 2) + ")"
		var steps []store.Step
		for _, atomic := range []bool{false, true} {
			spec, err := json.Marshal(executor.SQLSpec{Atomic: atomic, SQL: []executor.Statement{
				{Text: insert, Args: []any{1, "${job}"}}, {Text: "DELETE FROM effects WHERE n = 9"}, {Text: insert, Args: []any{2, "attempt ${attempt}"}}}})
			if err != nil {
				t.Fatal(err)
			}
			steps = append(steps, store.Step{Executor: "sql", Spec: spec})
		}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: steps}}})
		ticktest.Request(t, d, "job")
		if r := ticktest.Run(t, d); r.Succeeded != 1 || d.Int(t, "SELECT count(*) FROM effects WHERE n = 1 AND told = 'job' OR n = 2 AND told = 'attempt 1'") != 4 {
			t.Fatalf("%+v", r)
		}
	})
}
