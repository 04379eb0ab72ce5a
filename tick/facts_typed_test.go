package tick_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// placed is a column, with the way in which an argument gets there, the way in which it is read back as text, and the
// form of an instant there.
type placed struct{ column, place, read, layout string }

const (
	rfc    = "2006-01-02T15:04:05.000000Z"
	inSQL  = "2006-01-02 15:04:05.000000"
	onDate = "2006-01-02"
)

var instantPlaces = map[string][]placed{
	"postgres": {{"text", "%s", "%s", rfc}, {"varchar(40)", "%s", "%s", rfc}, {"jsonb", "to_jsonb(%s::text)", "%s #>> '{}'", rfc}, {"json", "json_build_object('at', %s::text)", "%s ->> 'at'", rfc},
		{"timestamptz", "%s", "to_char(%s AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')", inSQL}, {"timestamp", "%s", "to_char(%s, 'YYYY-MM-DD HH24:MI:SS.US')", inSQL}, {"date", "%s", "%s::text", onDate}},
	"mariadb": {{"text", "CAST(%s AS CHAR)", "%s", rfc}, {"varchar(40)", "cast( %s\n as character )", "%s", rfc}, {"text", "/* ? */ CONCAT('?', \"?\", CAST(%s AS CHAR), '\\'?')", "SUBSTR(%s, 3, 27)", rfc},
		{"json", "JSON_OBJECT('at', CAST(%s AS CHAR))", "JSON_VALUE(%s, '$.at')", rfc}, {"text", "%s", "%s", inSQL}, {"datetime(6)", "%s", "DATE_FORMAT(%s, '%%Y-%%m-%%d %%H:%%i:%%s.%%f')", inSQL},
		{"datetime", "%s", "CONCAT(%s, '.000000')", inSQL}, {"timestamp(6) NULL", "%s", "CAST(%s AS CHAR)", inSQL}, {"date", "%s", "CAST(%s AS CHAR)", onDate}},
	"sqlite": {{"text", "%s", "%s", rfc}, {"text", "json_object('at', %s)", "%s ->> 'at'", rfc}, {"text", "strftime('%%Y-%%m-%%d %%H:%%M:%%f000', %s)", "%s", inSQL}, {"text", "date(%s)", "%s", onDate}},
}

// others are the columns for facts that are no instants.
var others = map[string][]placed{
	"postgres": {{"text", "%s", "%s", ""}, {"jsonb", "to_jsonb(%s::text)", "%s #>> '{}'", ""}},
	"mariadb":  {{"text", "%s", "%s", ""}, {"json", "JSON_OBJECT('at', %s)", "JSON_VALUE(%s, '$.at')", ""}},
	"sqlite":   {{"text", "%s", "%s", ""}, {"text", "json_object('at', %s)", "%s ->> 'at'", ""}},
}

// numberPlaces are the columns for facts that count, ids the columns for the id of a run.
var (
	numberPlaces = map[string][]placed{
		"postgres": {{"bigint", "%s", "%s::text", ""}, {"numeric", "%s", "%s::text", ""}, {"int", "%s", "%s::text", ""}},
		"mariadb":  {{"bigint", "%s", "CAST(%s AS CHAR)", ""}, {"decimal(20)", "%s", "CAST(%s AS CHAR)", ""}},
		"sqlite":   {{"integer", "%s", "CAST(%s AS text)", ""}},
	}
	ids = map[string][]placed{
		"postgres": {{"uuid", "%s", "%s::text", ""}}, "mariadb": {{"uuid", "%s", "CAST(%s AS CHAR)", ""}}, "sqlite": {{"blob", "%s", "%s", ""}},
		"mysql": {{"binary(16)", "UUID_TO_BIN(%s)", "BIN_TO_UUID(%s)", ""}}, // MySQL has no type for them
	}
)

// Each fact arrives at each type of place: as the type of the place if it has one, and as text in the one form of RFC
// 3339 if it is text or JSON.
func TestFactsByType(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		cases := map[string][]placed{}
		for _, fact := range []string{"scheduled_for", "interval_start", "interval_end"} {
			cases[fact] = instantPlaces[d.Engine]
		}
		for _, fact := range []string{"attempt", "fence"} {
			cases[fact] = append(numberPlaces[d.Engine], others[d.Engine]...)
		}
		for _, fact := range []string{"job", "owner"} {
			cases[fact] = others[d.Engine]
		}
		cases["run_id"] = append(storetest.For(d.Server, ids), others[d.Engine]...)
		var jobs []store.Job
		for fact, list := range cases {
			var columns, into []string
			var args []any
			for i, c := range list {
				columns, args = append(columns, fmt.Sprintf("c%d %s", i, c.column)), append(args, "${"+fact+"}")
				mark := "?"
				if d.Engine == "postgres" {
					mark = fmt.Sprintf("$%d", i+1)
				}
				into = append(into, strings.ReplaceAll(fmt.Sprintf(c.place, mark), "%%", "%"))
			}
			d.Exec(t, "CREATE TABLE "+fact+" ("+strings.Join(columns, ", ")+")")
			st := ticktest.StepWith(false, "INSERT INTO "+fact+" VALUES ("+strings.Join(into, ", ")+")", args...)
			jobs = append(jobs, store.Job{Name: "of " + fact, Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{st}})
		}
		ticktest.Apply(t, d, store.Definitions{Jobs: jobs})
		ticktest.DecideOnly(t, d)
		d.Clock.Add(5 * time.Minute)
		ticktest.Run(t, d)
		for fact, list := range cases {
			run := ticktest.LastRun(t, d, "of "+fact)
			if run.State != store.Succeeded {
				t.Errorf("%s: %s: %s", fact, run.State, run.Error)
				continue
			}
			at := map[string]time.Time{"scheduled_for": run.ScheduledFor, "interval_start": run.IntervalStart, "interval_end": run.IntervalEnd}[fact]
			for i, c := range list {
				want := map[string]string{"attempt": "1", "fence": fmt.Sprint(run.Fence), "job": run.Job, "owner": run.Owner, "run_id": run.ID}[fact]
				if c.layout != "" {
					want = at.UTC().Format(c.layout)
				}
				var got string
				if err := d.SQL.QueryRow("SELECT " + fmt.Sprintf(c.read, fmt.Sprintf("c%d", i)) + " FROM " + fact).Scan(&got); err != nil || got != want {
					t.Errorf("%s in %s: %q, %v; want %q", fact, c.column, got, err, want)
				}
			}
		}
	})
}
