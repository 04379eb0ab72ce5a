package store_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// objects returns the objects of dbjobs that the catalogue has.
func objects(t *testing.T, d *storetest.DB) (names []string) {
	t.Helper()
	text := map[string]string{
		"sqlite": "SELECT name FROM sqlite_master WHERE name LIKE '%dbjobs%' OR tbl_name LIKE '%dbjobs%'",
		"postgres": `SELECT n.nspname FROM pg_namespace n WHERE n.nspname LIKE '%dbjobs%'
			UNION ALL SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'dbjobs'
			UNION ALL SELECT p.proname FROM pg_proc p WHERE p.proname LIKE '%dbjobs%'`,
		"mariadb": `SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name LIKE '%dbjobs%'
			UNION ALL SELECT routine_name FROM information_schema.routines WHERE routine_schema = DATABASE()`,
	}[d.Engine]
	rows, err := d.SQL.QueryContext(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func TestUninstallLeavesNothingBehindAndNothingElseAway(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		own := "dbjob_carts"
		if d.Engine == "postgres" {
			own = "public." + own
		}
		d.Exec(t, "CREATE TABLE "+own+" (n int PRIMARY KEY)")
		define := func() {
			t.Helper()
			step := []store.Step{{Executor: "sql", Spec: []byte(`{"sql": ["SELECT 1"]}`)}}
			if _, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{{Name: "a", Steps: step}}}, store.ApplyOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		define()
		if _, err := d.RunNow(t.Context(), "a", store.Request{}); err != nil {
			t.Fatal(err)
		}
		d.Exec(t, "UPDATE "+d.Table("runs")+" SET state = 'running'")
		if c, err := d.Contents(t.Context()); err != nil || !reflect.DeepEqual(c, store.Contents{Jobs: 1, Runs: 1, Running: 1}) {
			t.Fatalf("%+v, %v", c, err)
		}
		before := objects(t, d)
		if _, err := d.Uninstall(t.Context(), false); !errors.Is(err, store.ErrBusy) {
			t.Fatalf("while a run is executed: %v", err)
		}
		if got := objects(t, d); !slices.Equal(got, before) || len(got) < 15 {
			t.Fatalf("after the refusal there are %v", got)
		}
		if stays, err := d.Uninstall(t.Context(), true); err != nil || stays {
			t.Fatal(stays, err)
		}
		if left := objects(t, d); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		d.Exec(t, "INSERT INTO "+own+" VALUES (1)")
		if schema, err := d.Schema(t.Context()); err != nil || schema.Version != 0 {
			t.Fatalf("%+v, %v", schema, err)
		}
		if c, err := d.Contents(t.Context()); err != nil || !c.None {
			t.Fatalf("%+v, %v", c, err)
		}
		if _, err := d.Migrate(t.Context()); err != nil { // all begins anew
			t.Fatal(err)
		}
		define()
		if c, err := d.Contents(t.Context()); err != nil || !reflect.DeepEqual(c, store.Contents{Jobs: 1}) {
			t.Fatalf("%+v, %v", c, err)
		}
		if _, err := d.Uninstall(t.Context(), false); err != nil {
			t.Fatal(err)
		}
	})
}

// Where a table is missing, the content of the others still counts: no message says that nothing is lost, and runs that are
// executed hold up the rest.
func TestUninstallCountsTheTablesThatAreLeft(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		step := []store.Step{{Executor: "sql", Spec: []byte(`{"sql": ["SELECT 1"]}`)}}
		if _, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{{Name: "a", Steps: step}}}, store.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.RunNow(t.Context(), "a", store.Request{}); err != nil {
			t.Fatal(err)
		}
		d.Exec(t, "UPDATE "+d.Table("runs")+" SET state = 'running'")
		drop := "DROP TABLE " + d.Table("schedules")
		if d.Engine == "postgres" {
			drop += " CASCADE"
		}
		d.Exec(t, drop)
		if c, err := d.Contents(t.Context()); err != nil || c.Jobs != 1 || c.Runs != 1 || c.Running != 1 || !slices.Equal(c.Missing, []string{d.Table("schedules")}) {
			t.Errorf("%+v, %v", c, err)
		}
		if _, err := d.Uninstall(t.Context(), false); !errors.Is(err, store.ErrBusy) {
			t.Errorf("while a run is executed: %v", err)
		}
		d.Exec(t, "UPDATE "+d.Table("runs")+" SET state = 'succeeded'")
		d.Exec(t, "DELETE FROM "+d.Table("installation")) // as where a restore has stopped
		if c, err := d.Contents(t.Context()); err != nil || c.None {
			t.Errorf("there are tables, and no version: %+v, %v", c, err)
		}
		if _, err := d.Uninstall(t.Context(), false); err != nil {
			t.Error(err)
		}
		if left := objects(t, d); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

// What belongs to owners goes, too: policies of one table look into others, so no table could be dropped before them.
func TestUninstallWhereRowsHaveOwners(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine == "sqlite" {
			t.Skip("has no owners")
		}
		if err := d.SetOwners(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if stays, err := d.Uninstall(t.Context(), false); err != nil || stays {
			t.Fatal(stays, err)
		}
		if left := objects(t, d); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

// Objects that others have put into the schema stay, and so does the schema. If others have built
// something on a table of dbjobs, all tables stay.
func TestUninstallOnPostgreSQLKeepsWhatIsOfOthers(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine != "postgres" {
			t.Skip("only PostgreSQL has our tables in a schema of their own")
		}
		d.Exec(t, "CREATE TABLE dbjobs.theirs (n int)")
		d.Exec(t, "CREATE VIEW public.late AS SELECT id FROM dbjobs.runs")
		before := objects(t, d)
		if _, err := d.Uninstall(t.Context(), false); err == nil {
			t.Error("a table on which a view stands was dropped")
		}
		if got := objects(t, d); !slices.Equal(got, before) {
			t.Errorf("after the refusal there are %v", got)
		}
		d.Exec(t, "DROP VIEW public.late")
		if stays, err := d.Uninstall(t.Context(), false); err != nil || !stays {
			t.Fatal(stays, err)
		}
		if left := objects(t, d); !slices.Equal(left, []string{"dbjobs", "theirs"}) {
			t.Errorf("left: %v", left)
		}
	})
}
