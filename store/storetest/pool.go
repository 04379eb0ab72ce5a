package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// Main is the TestMain of a package that opens many databases. On PostgreSQL a new one takes a quarter
// of a second of the server's time, and on MariaDB a tenth. So a database that a test gives back there
// is emptied and given to the next test. Main drops them at the end.
func Main(m interface{ Run() int }) int {
	spare.used = true
	code := m.Run()
	if poolerFolder != "" {
		defer os.RemoveAll(poolerFolder)
	}
	for _, list := range spare.free {
		for _, s := range list {
			if err := s.remove(); err != nil {
				fmt.Fprintln(os.Stderr, "drop a database of the tests:", err)
				code = max(code, 1)
			}
		}
	}
	if err := dropLogins(); err != nil {
		fmt.Fprintln(os.Stderr, "drop a login of the tests:", err)
		code = max(code, 1)
	}
	return code
}

// spare has the databases that no test uses now, and that are like new.
var spare struct {
	used bool // the package has Main
	mu   sync.Mutex
	free map[spareKind][]*spareDB
}

type spareKind struct {
	variable string // which names the server
	driver   string
	migrated bool // with our tables
	pooled   bool // clients come through a pooler
	apart    bool // it has Accounts
}

// spareDB is a database on a server.
type spareDB struct {
	spareKind
	url    string
	direct string // the URL past a pooler, if there is one
	source string // the URL in the form of the driver
	asNew  string // what its catalogue said when it was new
	drop   func() error
	own    *sql.DB // the pool's own; where sessions stay, tests have it as DB.SQL

	// The store that Open opens for most tests, with a clock of its own.
	store *store.Store
	clock *Clock

	accounts *Accounts // see Apart
}

// keeps reports whether sessions stay with the database from test to test. They stay on PostgreSQL,
// where a new session takes 7 ms of CPU, and as much again to read the catalogue. What a test sets in
// DB.SQL is undone. The store keeps no state in a session. A pooler would give the sessions to others.
func (s *spareDB) keeps() bool {
	return spare.used && s.driver == "pgx" && (s.migrated || s.apart) && !s.pooled
}

// reopen returns the store of the test before, as if it were new. It returns nil if there is none, or
// if the test wants other options.
func (s *spareDB) reopen(o store.Options) *store.Store {
	if s.store != nil && isPlain(o) {
		s.clock.Set(start)
		s.store.Serve(nil)
		s.store.Separate(false, "")
		return s.store
	}
	return nil
}

func isPlain(o store.Options) bool {
	return o.Clock == nil && o.Chance == nil && o.Wrap == nil && o.Secrets == nil && o.Login == nil && o.Patience == 0 && !o.OtherFiles
}

// rest ends the sessions that stay, except one of the store, which answers, and the one that empties
// the database. It returns how many there are beside the one that empties the database.
func (s *spareDB) rest(db *sql.DB) (beside int, err error) {
	if s.store != nil {
		s.store.Sleep()
		if s.store.Wake(context.Background()) == nil {
			beside = 1
		} else { // the test has closed it
			s.store.Close()
			s.store = nil
		}
	}
	if s.keeps() {
		_, err = db.Exec("DISCARD ALL")
	}
	return beside, err
}

// ours returns the pool's own connection to the database. On PostgreSQL, a connection to a database
// with our tables stays, too.
func (s *spareDB) ours() (db *sql.DB, done func(), err error) {
	if s.own != nil {
		return s.own, func() {}, nil
	}
	if db, err = sql.Open(s.driver, s.source); err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(1)
	if s.driver == "pgx" && s.migrated {
		s.own = db
		return db, func() {}, nil
	}
	return db, func() { db.Close() }, nil
}

// remove drops the database.
func (s *spareDB) remove() error {
	if s.own != nil {
		s.own.Close()
	}
	if s.store != nil {
		s.store.Close()
	}
	return s.drop()
}

// takeSpare returns a database of the kind that is like new, or nil.
func takeSpare(kind spareKind) *spareDB {
	spare.mu.Lock()
	defer spare.mu.Unlock()
	list := spare.free[kind]
	if len(list) == 0 {
		return nil
	}
	spare.free[kind] = list[:len(list)-1]
	return list[len(list)-1]
}

// giveBack empties a database for the next test. If it is not like new then, giveBack drops it.
func (s *spareDB) giveBack(t testing.TB) {
	t.Helper()
	if s.asNew != "" && !t.Failed() && s.empty() {
		spare.mu.Lock()
		defer spare.mu.Unlock()
		if spare.free == nil {
			spare.free = map[spareKind][]*spareDB{}
		}
		spare.free[s.spareKind] = append(spare.free[s.spareKind], s)
		return
	}
	if err := s.remove(); err != nil {
		t.Errorf("drop the test's database: %v", err)
	}
}

// isNew is called for a database that was just made. If it gets tables or rights before the test begins, they are ours.
func (s *spareDB) isNew(t testing.TB) {
	t.Helper()
	if s.migrated || s.apart || !spare.used {
		return
	}
	db, err := sql.Open(s.driver, s.source)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s.remember(t, db)
}

// isMade is called for a database that has what it gets before a test begins.
func (s *spareDB) isMade(t testing.TB, db *sql.DB) {
	t.Helper()
	if (s.migrated || s.apart) && spare.used && s.asNew == "" {
		s.remember(t, db)
	}
}

// remember keeps what the catalogue of the new database says.
func (s *spareDB) remember(t testing.TB, db *sql.DB) {
	t.Helper()
	var err error
	if s.asNew, err = s.catalogue(db); err != nil {
		t.Fatal(err)
	}
}

// catalogue returns what the database's catalogue says.
func (s *spareDB) catalogue(db *sql.DB) (text string, err error) {
	if s.driver == "mysql" {
		tables, err := tablesOfMariaDB(db)
		if err != nil {
			return "", err
		}
		return catalogueOfMariaDB(db, tables, s.migrated)
	}
	err = db.QueryRow(catalogue(s.migrated)).Scan(&text)
	return text, err
}

// empty removes what a test left, and reports whether the database is like new.
func (s *spareDB) empty() bool {
	db, done, err := s.ours()
	if err != nil {
		return false
	}
	defer done()
	if s.driver == "mysql" {
		if !alone(db, 0, "information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()") {
			return false
		}
		now, err := emptyMariaDB(db, s.migrated)
		return err == nil && now == s.asNew
	}
	beside, err := s.rest(db)
	if err != nil || !alone(db, beside, s.idleBehind("pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")) {
		return false
	}
	if _, err := db.Exec(emptying(s.migrated)); err != nil {
		return false
	}
	now, err := s.catalogue(db)
	return err == nil && now == s.asNew
}

// alone waits a moment until the sessions of the test are gone, except those that stay. A session ends
// a little later than its client.
func alone(db *sql.DB, stay int, sessions string) bool {
	for range 100 {
		others := stay + 1
		if err := db.QueryRow("SELECT count(*) FROM " + sessions).Scan(&others); err != nil {
			return false
		}
		if others == stay {
			return true
		}
		time.Sleep(5 * time.Millisecond)
	}
	return false
}

// emptying drops what a test made in the schema public, and empties or drops our tables. catalogue
// finds anything else that a test made. To truncate a table makes new files for it and each of its
// indexes. For all tables together this takes 30 ms of the server's time, where DELETE takes 1 ms. It
// would also hide from catalogue that a table was analyzed, so an analyzed table is never truncated.
func emptying(migrated bool) string {
	ours := `DROP SCHEMA IF EXISTS dbjobs CASCADE;`
	if migrated {
		ours = `
  FOR o IN SELECT c.oid::regclass AS name, pg_relation_size(c.oid) AS size, c.reltuples FROM pg_class c
      WHERE c.relnamespace = 'dbjobs'::regnamespace AND c.relkind = 'r' LOOP
    IF o.size > 65536 AND o.reltuples <= 0 THEN
      EXECUTE format('TRUNCATE %s', o.name);
    ELSIF o.size > 0 AND o.name <> 'dbjobs.installation'::regclass THEN
      EXECUTE format('DELETE FROM %s', o.name);
    END IF;
  END LOOP;
  PERFORM setval(s.seqrelid, s.seqstart, false) FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid
      WHERE c.relnamespace = 'dbjobs'::regnamespace AND pg_sequence_last_value(s.seqrelid) IS NOT NULL;
  UPDATE dbjobs.installation SET instance = NULL, owners = false WHERE instance IS NOT NULL OR owners;`
	}
	return `DO $$ DECLARE o record; BEGIN
  FOR o IN SELECT format('%I.%I', n.nspname, c.relname) AS name, c.relkind AS kind FROM pg_class
      c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p', 'v', 'm') LOOP
    EXECUTE format('DROP %s IF EXISTS %s CASCADE', CASE o.kind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN
      'MATERIALIZED VIEW' ELSE 'TABLE' END, o.name);
  END LOOP;
  FOR o IN SELECT p.oid::regprocedure AS name FROM pg_proc p WHERE p.pronamespace =
      'public'::regnamespace LOOP
    EXECUTE format('DROP ROUTINE IF EXISTS %s CASCADE', o.name);
  END LOOP;
  FOR o IN SELECT format('%I.%I', n.nspname, c.relname) AS name FROM pg_class c JOIN pg_namespace
      n ON n.oid = c.relnamespace
      WHERE n.nspname = 'public' AND c.relkind = 'S' LOOP
    EXECUTE format('DROP SEQUENCE IF EXISTS %s CASCADE', o.name);
  END LOOP;` + ours + `
END $$`
}

// catalogue returns a query. Its answer changes once anything but rows has changed in a database: a table, a
// right, a setting, or what the planner has learned. The xmin of a row of the catalogue is the transaction
// that wrote it. For a table and its indexes the query leaves xmin out, since emptying may write their rows.
func catalogue(migrated bool) string {
	text := `SELECT md5(string_agg(x, '|' ORDER BY x)) FROM (
  SELECT concat_ws(',', oid, relname, relnamespace, relkind, relowner, relacl, reloptions,
      relpersistence, relhastriggers, relhasrules,
    relrowsecurity, relforcerowsecurity, relreplident, reltablespace, CASE relkind WHEN 'i' THEN
      0 ELSE reltuples END) AS x FROM pg_class WHERE oid >= 16384 AND relnamespace <>
      'pg_toast'::regnamespace
  UNION ALL SELECT concat_ws(',', 'column', attrelid, attnum, xmin) FROM pg_attribute WHERE
      attrelid >= 16384
  UNION ALL SELECT concat_ws(',', 'namespace', oid, xmin) FROM pg_namespace WHERE nspname NOT
      LIKE 'pg\_t%'
  UNION ALL SELECT concat_ws(',', 'index', indexrelid, xmin) FROM pg_index WHERE indexrelid >= 16384
  UNION ALL SELECT concat_ws(',', 'setting', setrole, setconfig) FROM pg_db_role_setting s JOIN
      pg_database d ON d.oid = s.setdatabase WHERE d.datname = current_database()
  UNION ALL SELECT concat_ws(',', 'database', oid, datdba, datallowconn, datconnlimit, a) FROM pg_database,
      aclexplode(coalesce(datacl, acldefault('d', datdba))) a WHERE datname = current_database()`
	for _, table := range []string{"pg_attrdef", "pg_cast", "pg_collation", "pg_constraint", "pg_conversion", "pg_default_acl", "pg_event_trigger", "pg_extension", "pg_operator",
		"pg_opclass", "pg_policy", "pg_proc", "pg_publication", "pg_rewrite", "pg_statistic_ext", "pg_trigger", "pg_type"} {
		text += "\n  UNION ALL SELECT concat_ws(',', '" + table + "', oid, xmin) FROM " + table + " WHERE oid >= 16384"
	}
	if migrated {
		text += "\n  UNION ALL SELECT concat_ws(',', id, version, oldest, repeatable, owners, migrated_at) FROM dbjobs.installation"
	}
	return text + "\n) AS all_of_it"
}
