package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// open opens an empty database. If the database needs it, as on SQLite, open makes the file and the tables.
func open(t *testing.T, url string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), url, store.Options{})
	if errors.Is(err, store.ErrSchema) {
		if s, err = store.Open(t.Context(), url, store.Options{Create: true}); err == nil {
			_, err = s.Migrate(t.Context())
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestMigratorsTakeTurns(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines(t) {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t, engine)
			var wait sync.WaitGroup
			errs := make(chan error, 4)
			for range 4 {
				wait.Go(func() {
					s, err := store.Open(context.Background(), url, store.Options{Create: true})
					if err != nil {
						errs <- err
						return
					}
					defer s.Close()
					_, err = s.Migrate(context.Background())
					errs <- err
				})
			}
			wait.Wait()
			close(errs)
			for err := range errs {
				if err != nil {
					t.Error(err)
				}
			}
			s := open(t, url)
			if err := s.CheckSchema(t.Context()); err != nil {
				t.Error(err)
			}
			if applied, err := s.Migrate(t.Context()); err != nil || len(applied) != 0 {
				t.Errorf("again: %v, %v", applied, err)
			}
		})
	}
}

func TestAProgramKnowsItsRange(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "UPDATE "+d.Table("installation")+" SET version = 99")
		if err := d.CheckSchema(t.Context()); err != nil {
			t.Errorf("a newer schema that takes this program: %v", err)
		}
		if err := d.SetOwners(t.Context(), true); !errors.Is(err, store.ErrSchema) || !strings.Contains(err.Error(), "with a newer dbjobs") {
			t.Errorf("owners of a newer schema, whose new tables this program does not know: %v", err)
		}
		if _, err := d.Uninstall(t.Context(), true); !errors.Is(err, store.ErrSchema) || !strings.Contains(err.Error(), "with a newer dbjobs") {
			t.Errorf("a newer schema was uninstalled, whose new tables would stay: %v", err)
		}
		if now, err := d.Schema(t.Context()); err != nil || now.Owners {
			t.Errorf("%+v, %v", now, err)
		}
		d.Exec(t, "UPDATE "+d.Table("installation")+" SET oldest = 99")
		for _, check := range []func() error{
			func() error { return d.CheckSchema(t.Context()) },
			func() error { _, err := d.Probe(t.Context(), "tick", "tick"); return err },
			func() error { _, err := d.Migrate(t.Context()); return err },
		} {
			if err := check(); !errors.Is(err, store.ErrSchema) || !strings.Contains(err.Error(), "use a newer dbjobs") {
				t.Errorf("a newer schema that does not: %v", err)
			}
		}
		d.Exec(t, "UPDATE "+d.Table("installation")+" SET version = 0, oldest = 0")
		if _, err := d.Probe(t.Context(), "tick", "tick"); !errors.Is(err, store.ErrSchema) || !strings.Contains(err.Error(), "dbjobs migrate") {
			t.Errorf("an old schema: %v", err)
		}
	})
}

// A dump may leave out routines, and somebody may drop a view: migrate brings in again what is missing.
func TestMigratorsBringInWhatIsMissing(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ours, err := store.Statements(d.Store.Engine()).Repeatables(false)
		if err != nil {
			t.Fatal(err)
		}
		missing := func() int {
			t.Helper()
			v, err := d.Store.Server(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return len(v.Repeatables)
		}
		for _, drop := range []string{"ROUTINE", "VIEW"} {
			dropped := 0
			for _, r := range ours {
				if r.Kind == "VIEW" && drop == "VIEW" && strings.HasSuffix(r.Name, "v_gaps") || r.Kind != "VIEW" && drop == "ROUTINE" {
					if dropped++; d.Engine == "postgres" && drop == "ROUTINE" {
						r.Kind = "ROUTINE"
					}
					d.Exec(t, "DROP "+r.Kind+" "+r.Name)
				}
			}
			if n := missing(); n != dropped {
				t.Errorf("%s: %d were dropped, %d are missing", drop, dropped, n)
			}
			want := map[bool][]string{true: {"views and routines"}}[dropped > 0]
			if done, err := d.Migrate(t.Context()); err != nil || !slices.Equal(done, want) || missing() > 0 {
				t.Errorf("%s: %q, %d are missing, %v", drop, done, missing(), err)
			}
		}
	})
}

// A table that is gone has lost its content, so no migrator makes it again, or says that all is well.
func TestMigratorsNameTheTableThatIsMissing(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "DROP TABLE "+d.Table("job_ends"))
		for _, views := range []string{"these", "those of another program"} {
			if done, err := d.Migrate(t.Context()); len(done) > 0 || !errors.Is(err, store.ErrSchema) || !strings.Contains(err.Error(), d.Table("job_ends")+"; restore") {
				t.Errorf("%s: %q, %v", views, done, err)
			}
			d.Exec(t, "UPDATE "+d.Table("installation")+" SET repeatable = ''")
		}
		if _, err := d.Uninstall(t.Context(), false); err != nil {
			t.Error(err)
		}
		if done, err := d.Migrate(t.Context()); err != nil || len(done) == 0 {
			t.Errorf("after uninstall: %q, %v", done, err)
		}
	})
}

// MySQL and MariaDB do not show a login the tables on which it has no right, and do not tell it either if they are there: such a
// table is not called missing, and nobody is sent to a copy of the database or to uninstall.
func TestMigratorsNameTheTableThatIsNotShown(t *testing.T) {
	t.Parallel()
	storetest.Needs(t, "mariadb")
	d := storetest.Open(t, "mariadb", store.Options{})
	login, s := d.As(t)
	d.Exec(t, "REVOKE ALL ON "+d.Table("calendars")+" FROM "+login+"@'%'")
	done, err := s.Migrate(t.Context())
	if len(done) > 0 || !errors.Is(err, store.ErrSchema) || !strings.Contains(err.Error(), "no right on them, or they are missing: "+d.Table("calendars")+";") {
		t.Errorf("%q, %v", done, err)
	}
	if err != nil && (strings.Contains(err.Error(), "uninstall") || strings.Contains(err.Error(), "copy") || strings.Contains(err.Error(), "keys")) {
		t.Errorf("a dangerous advice: %v", err)
	}
	v, err := s.Server(t.Context())
	if err != nil || len(v.Missing.Tables)+len(v.Indexes) > 0 || !slices.Equal(v.NotShown, []string{d.Table("calendars")}) {
		t.Errorf("%v: %+v", err, v)
	}
}

// A dump of PostgreSQL makes the keys after the rows, so a restore that stopped has tables without them. Without the key of the
// runs, two passes at once would make a run twice, so no migrator says that all is well.
func TestMigratorsNameTheKeyThatIsMissing(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine != "postgres" {
			t.Skip("a dump makes the keys with the tables")
		}
		keys := func() (missing, there string) {
			t.Helper()
			v, err := d.Store.Server(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			err = d.SQL.QueryRow(`SELECT coalesce(string_agg('dbjobs.' || c.conname, ' ' ORDER BY c.conname), '') FROM pg_constraint c
				WHERE c.connamespace = 'dbjobs'::regnamespace AND c.contype IN ('p', 'u')`).Scan(&there)
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(v.Keys)
			return strings.Join(v.Keys, " "), there
		}
		missing, all := keys()
		if missing != "" {
			t.Errorf("nothing was dropped, and %s are missing", missing)
		}
		d.Exec(t, "ALTER TABLE dbjobs.runs DROP CONSTRAINT runs_job_id_occurrence_key")
		if done, err := d.Migrate(t.Context()); len(done) > 0 || !errors.Is(err, store.ErrSchema) || !strings.Contains(err.Error(), "twice: dbjobs.runs_job_id_occurrence_key; where") {
			t.Errorf("%q, %v", done, err)
		}
		d.Exec(t, "UPDATE dbjobs.installation SET version = version + 1")
		if done, err := d.Migrate(t.Context()); len(done) > 0 || err != nil {
			t.Errorf("a newer schema, which may have other keys: %q, %v", done, err)
		}
		d.Exec(t, "DELETE FROM dbjobs.installation") // the restore stopped earlier
		if done, err := d.Migrate(t.Context()); len(done) > 0 || !errors.Is(err, store.ErrSchema) {
			t.Errorf("without a version: %q, %v", done, err)
		}
		d.Exec(t, `DO $$ DECLARE k record; BEGIN
			FOR k IN SELECT conrelid::regclass AS t, conname FROM pg_constraint WHERE connamespace = 'dbjobs'::regnamespace AND contype IN ('p', 'u') LOOP
				EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', k.t, k.conname);
			END LOOP; END $$`)
		if missing, _ := keys(); missing != all {
			t.Errorf("missing are\n%s, want\n%s", missing, all)
		}
	})
}

// A restore that is under way has some of the rows, and no keys yet. A pass that decided there would leave the restore with rows that
// the keys refuse.
func TestNoPassDuringARestore(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine != "postgres" {
			t.Skip("a dump makes the keys with the tables")
		}
		probe := func() error { _, err := d.Probe(t.Context(), "tick", "tick"); return err }
		keys, err := d.SQL.Query(`SELECT conrelid::regclass::text, conname FROM pg_constraint WHERE connamespace = 'dbjobs'::regnamespace
			AND (contype = 'p' AND conrelid::regclass::text NOT IN ('dbjobs.changes', 'dbjobs.installation', 'dbjobs.ticks') OR conname = 'runs_job_id_occurrence_key')`)
		if err != nil {
			t.Fatal(err)
		}
		defer keys.Close()
		var list [][2]string
		for keys.Next() {
			var k [2]string
			if err := keys.Scan(&k[0], &k[1]); err != nil {
				t.Fatal(err)
			}
			list = append(list, k)
		}
		if keys.Err() != nil || len(list) == 0 {
			t.Fatal(keys.Err(), "no keys")
		}
		for _, k := range list {
			d.Exec(t, fmt.Sprintf("ALTER TABLE %s RENAME CONSTRAINT %s TO later", k[0], k[1]))
			if err := probe(); !errors.Is(err, store.ErrSchema) || !strings.Contains(err.Error(), "wait for its end") {
				t.Errorf("without %s: %v", k[1], err)
			}
			d.Exec(t, fmt.Sprintf("ALTER TABLE %s RENAME CONSTRAINT later TO %s", k[0], k[1]))
		}
		if err := probe(); err != nil {
			t.Errorf("with all keys: %v", err)
		}
		d.Exec(t, "ALTER TABLE dbjobs.plans DROP CONSTRAINT plans_pkey")
		d.Exec(t, "UPDATE dbjobs.installation SET version = version + 1")
		if err := probe(); err != nil {
			t.Errorf("a newer schema, which may have other keys: %v", err)
		}
	})
}

// A dump makes indexes last, so a restore that stopped may lack them while it has all keys. Without a unique one, two jobs may
// have one name. It can be made again by itself, by the statement that doctor prints.
func TestMigratorsNameTheUniqueIndexThatIsMissing(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		drop := "DROP INDEX " + d.Table("jobs_name")
		if d.Engine == "mariadb" || d.Engine == "mysql" {
			drop = "DROP INDEX jobs_name ON " + d.Table("jobs")
		}
		d.Exec(t, drop)
		if done, err := d.Migrate(t.Context()); len(done) > 0 || !errors.Is(err, store.ErrSchema) || !strings.Contains(err.Error(), "jobs_name; where") {
			t.Errorf("%q, %v", done, err)
		}
		v, err := d.Store.Server(t.Context())
		if err != nil || len(v.Indexes) != 1 || !v.Indexes[0].Unique {
			t.Fatalf("%+v, %v", v.Indexes, err)
		}
		d.Exec(t, v.Indexes[0].Make)
		if done, err := d.Migrate(t.Context()); len(done) > 0 || err != nil {
			t.Errorf("the index was made again: %q, %v", done, err)
		}
	})
}

// TestTheSchemaAsText: if only other people may run DDL, the text does what Migrate does.
func TestTheSchemaAsText(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines(t) {
		if engine == "sqlite" { // its file is the program's own; Migrate makes it
			continue
		}
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t, engine)
			s := open(t, url)
			text, err := store.MigrationText(url, false)
			if err != nil {
				t.Fatal(err)
			}
			db := storetest.SQL(t, s)
			for range 2 { // each statement can be run twice
				for _, st := range statementsOf(text) {
					if _, err := db.Exec(st); err != nil {
						t.Fatalf("%v:\n%s", err, st)
					}
				}
			}
			if err := s.CheckSchema(t.Context()); err != nil {
				t.Error(err)
			}
			if applied, err := s.Migrate(t.Context()); err != nil || len(applied) != 0 {
				t.Errorf("%v, %v", applied, err)
			}
		})
	}
}

// statementsOf are the statements of a text for the engine's client.
func statementsOf(text string) (all []string) {
	tables, others, _ := strings.Cut(text, "-- views and routines\n")
	others = strings.NewReplacer("DELIMITER ;;\n", "", "\n;;\nDELIMITER ;\n", "\n;\n").Replace(others)
	for _, st := range slices.Concat(strings.Split(tables, ";\n"), strings.Split(others, "\n;\n")) {
		if strings.TrimSpace(st) != "" {
			all = append(all, st)
		}
	}
	return all
}

// A later version can alter each of the tables, also where the engine copies a table and computes its
// generated columns anew.
func TestTablesCanBeAltered(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		tables := map[string]string{
			"sqlite":   "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'dbjobs_%'",
			"postgres": "SELECT 'dbjobs.' || tablename FROM pg_tables WHERE schemaname = 'dbjobs'",
			"mariadb":  "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE' AND table_name LIKE 'dbjobs%'",
		}[d.Engine]
		copying := map[bool]string{true: ", ALGORITHM=COPY"}[d.Engine == "mariadb"]
		n := d.Int(t, "SELECT count(*) FROM ("+tables+") AS t")
		if n < 10 {
			t.Fatalf("%d tables", n)
		}
		for i := range n {
			var name string
			if err := d.SQL.QueryRow(tables + fmt.Sprintf(" ORDER BY 1 LIMIT 1 OFFSET %d", i)).Scan(&name); err != nil {
				t.Fatal(err)
			}
			if _, err := d.SQL.Exec("ALTER TABLE " + name + " ADD COLUMN later int" + copying); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// An index whose order comes from the server's libraries is wrong after their upgrade: a unique key then lets a name in
// twice. So each text in an index is ordered by its bytes.
func TestIndexesAreOrderedByBytes(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if err := d.SetOwners(t.Context(), true); err != nil && d.Engine != "sqlite" { // makes an index, too
			t.Fatal(err)
		}
		query := map[string]string{
			"sqlite": `SELECT t.name, i.name, c.coll FROM sqlite_master t, pragma_index_list(t.name) i, pragma_index_xinfo(i.name) c
				WHERE t.type = 'table' AND t.name LIKE 'dbjobs_%'`,
			"postgres": `SELECT i.indrelid::regclass::text, i.indexrelid::regclass::text, c.collname FROM pg_index i
				CROSS JOIN unnest(i.indcollation) AS o(id) JOIN pg_collation c ON c.oid = o.id
				WHERE i.indrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'dbjobs'::regnamespace)`,
			"mariadb": `SELECT s.table_name, s.index_name, c.collation_name FROM information_schema.statistics s
				JOIN information_schema.columns c USING (table_schema, table_name, column_name)
				WHERE s.table_schema = DATABASE() AND c.collation_name IS NOT NULL`,
		}[d.Engine]
		rows, err := d.SQL.Query(query)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		seen := 0
		for rows.Next() {
			var table, index, collation string
			if err := rows.Scan(&table, &index, &collation); err != nil {
				t.Fatal(err)
			}
			if seen++; !slices.Contains([]string{"C", "BINARY", "utf8mb4_bin", "ascii_bin"}, collation) {
				t.Errorf("%s has an index %s with the order %s", table, index, collation)
			}
		}
		if err := rows.Err(); err != nil || seen < 15 {
			t.Errorf("%d texts in indexes: %v", seen, err)
		}
	})
}
