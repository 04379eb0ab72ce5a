package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// schemaTable is a table that the migrations make, with its columns except the one that the engine numbers.
type schemaTable struct {
	name    string
	columns []string
	keys    []string // its constraints, where the engine names them, and a copy may lack them
}

var (
	createdTable = lazyregexp.New(`(?s)CREATE TABLE IF NOT EXISTS (\S+) \((.*?)\n\)`)
	itsColumn    = lazyregexp.New(`(?m)^  ([a-z]\w*) +[a-z].*$`)
	numbered     = lazyregexp.New(`AS IDENTITY|AUTO_INCREMENT`)
	createdIndex = lazyregexp.New(`CREATE (UNIQUE )?INDEX IF NOT EXISTS ([a-z]\w*)\s+ON (\S+) `)
	itsIndex     = lazyregexp.New(`(?m)^  ((UNIQUE )?KEY ([a-z]\w*) .*?),? *$`)
	itsKey       = lazyregexp.New(`(?m)^  (?:([a-z]\w*) .*\b)?(PRIMARY KEY|UNIQUE)\b(?: \((.*?)\))?`)
)

// Index is an index of the schema, with the statement that makes it. Unique says that without it rows may be made twice.
type Index struct {
	Name, Make string
	Unique     bool
	table      string
}

type schema struct {
	tables  []schemaTable
	indexes []Index
}

// schema returns what the migrations make, except for views and routines.
func (e *Engine) schema() (schema, error) { return schemas(e) }

var schemas = kept((*Engine).readSchema)

func (e *Engine) readSchema() (made schema, err error) {
	all, err := e.Migrations()
	for _, m := range all {
		for _, st := range m.Statements {
			st = trailingComment.ReplaceAllString(st, "")
			for _, f := range createdTable.FindAllStringSubmatch(st, -1) {
				t := schemaTable{name: f[1]}
				for _, c := range itsColumn.FindAllStringSubmatch(f[2], -1) {
					if !numbered.MatchString(c[0]) {
						t.columns = append(t.columns, c[1])
					}
				}
				for _, x := range itsIndex.FindAllStringSubmatch(f[2], -1) {
					made.indexes = append(made.indexes, Index{x[3], "ALTER TABLE " + t.name + " ADD " + x[1], x[2] != "", t.name})
				}
				for _, k := range itsKey.FindAllStringSubmatch(f[2], -1) {
					if e.nameOfKey != nil {
						t.keys = append(t.keys, e.nameOfKey(t.name, k[2] == "PRIMARY KEY", k[1]+k[3]))
					}
				}
				made.tables = append(made.tables, t)
			}
			for _, f := range createdIndex.FindAllStringSubmatch(st, -1) {
				made.indexes = append(made.indexes, Index{f[2], strings.Join(strings.Fields(st), " "), f[1] != "", f[3]})
			}
		}
	}
	return made, err
}

var trailingComment = lazyregexp.New(`(?m)--.*$`)

// Missing is what the migrations make, and the database does not have.
type Missing struct {
	Tables      []string
	NotShown    []string // tables of which the server does not tell this login if they are there
	None        bool     // no table is there
	Keys        []string // of the tables that are there: of PostgreSQL, whose dumps make them after the rows
	Indexes     []Index  // of the tables that are there
	Repeatables []string // views and routines
	OldViews    []string // views that were made by an older server, and that this one would make otherwise
}

// Missing returns what the database does not have. MySQL and MariaDB do not show views and routines that the login may not
// use: where they show none of them, none counts as missing, unless the login would be shown routines. A dump may have left
// these out. Tables on which the login has no right are not shown either, and are refused, be they there or not.
func (db *DB) Missing(ctx context.Context) (m Missing, err error) {
	var there []string
	var name string
	if err := db.Query(ctx, "catalogue", nil, Scan(func() { there = append(there, strings.ToLower(name)) }, &name)); err != nil {
		return m, err
	}
	all, err := db.statements.Repeatables(false)
	if err != nil {
		return m, err
	}
	isThere := func(name string) bool { return slices.Contains(there, name[strings.LastIndex(name, ".")+1:]) }
	shown := map[string]bool{}
	if db.e.hides {
		var rights int
		if err := db.Row(ctx, "shown_routines", nil, &rights); err != nil {
			return m, err
		}
		shown["FUNCTION"], shown["PROCEDURE"] = rights > 0, rights > 0
	}
	for _, r := range all {
		shown[r.Kind] = shown[r.Kind] || !db.e.hides || isThere(r.Name)
	}
	for _, r := range all {
		if shown[r.Kind] && !isThere(r.Name) {
			m.Repeatables = append(m.Repeatables, r.Name)
		}
	}
	if err := db.missingTables(ctx, &m, isThere); err != nil {
		return m, err
	}
	m.OldViews, err = db.oldViews(ctx, all)
	return m, err
}

// oldViews returns the views that an upgrade of the server, or a dump, has brought from an older one: their text is the same.
func (db *DB) oldViews(ctx context.Context, all []Repeatable) (old []string, err error) {
	if !db.Has("old_views") {
		return nil, nil
	}
	var names []string
	for _, r := range all {
		if r.Kind == "VIEW" {
			names = append(names, r.Name[strings.LastIndex(r.Name, ".")+1:])
		}
	}
	err = db.Query(ctx, "old_views", Args{"names": names}, Column(&old))
	return old, err
}

// missingTables adds the tables, and what belongs to them.
func (db *DB) missingTables(ctx context.Context, m *Missing, isThere func(name string) bool) error {
	wanted, err := db.e.schema()
	if err != nil {
		return err
	}
	for _, t := range wanted.tables {
		switch refused, err := db.refuses(ctx, t.name, isThere); {
		case err != nil:
			return err
		case refused:
			m.NotShown = append(m.NotShown, t.name)
		case !isThere(t.name):
			m.Tables = append(m.Tables, t.name)
		default:
			m.Keys = append(m.Keys, slices.DeleteFunc(slices.Clone(t.keys), isThere)...)
		}
	}
	m.None = len(m.Tables) == len(wanted.tables)
	for _, x := range wanted.indexes {
		if isThere(x.table) && !isThere(x.Name) {
			m.Indexes = append(m.Indexes, x)
		}
	}
	return nil
}

// refuses reports whether a table that is not among those shown may be there: the server refuses to read it.
func (db *DB) refuses(ctx context.Context, table string, isThere func(name string) bool) (bool, error) {
	if !db.e.hides || isThere(table) {
		return false, nil
	}
	err := db.sends(ctx, "SELECT 1 FROM "+table+" WHERE 1 = 0")
	switch class := db.e.classify(err); {
	case err == nil || class == noTable:
		return false, nil
	case class == forbidden:
		return true, nil
	}
	return false, db.Wrap("look at the tables", err)
}

// Unusable returns the views that nobody can read, each with the error: MariaDB lets an administrator drop the account that
// made them, and goes on to list them. One statement looks at all of them, and others only follow if it fails. A view that
// is missing, or that this login may not read, is not among them.
func (db *DB) Unusable(ctx context.Context) (list []string, err error) {
	if db.e.unusable == nil {
		return nil, nil
	}
	all, err := db.statements.Repeatables(false)
	if err != nil {
		return nil, err
	}
	var reads []string
	for _, r := range all {
		if r.Kind == "VIEW" {
			reads = append(reads, "SELECT 1 FROM "+r.Name+" WHERE 1 = 0")
		}
	}
	if db.sends(ctx, strings.Join(reads, " UNION ALL ")) == nil {
		return nil, nil
	}
	for _, read := range reads {
		if err := db.sends(ctx, read); ctx.Err() != nil {
			return nil, db.Wrap("look at the views", err)
		} else if err != nil && db.e.unusable(err) {
			name, _, _ := strings.Cut(strings.TrimPrefix(read, "SELECT 1 FROM "), " ")
			list = append(list, fmt.Sprintf("%s: %v", name, db.hide(err)))
		}
	}
	return list, nil
}

// Unwritable returns the files, and the folder, that this process cannot write, although a pass has to. A server is asked for
// rights instead: see Denied.
func (db *DB) Unwritable() []string {
	if db.e.unwritable == nil {
		return nil
	}
	return db.e.unwritable(db.url)
}

// Denied returns what this login may not do with the tables of the schema, such as "DELETE on dbjobs.runs", and which routine it
// may not call. The rights are those of a ticker: see Grants. It changes nothing: the server checks the rights of a statement before it explains it. SQLite has no rights.
func (db *DB) Denied(ctx context.Context) (denied []string, err error) {
	if !db.e.KnowsLogins {
		return nil, nil
	}
	all, err := db.e.schema()
	if err != nil {
		return nil, err
	}
	explain := func(right, st string) error {
		err := db.sends(ctx, "EXPLAIN "+st)
		if err != nil && db.e.classify(err) == forbidden {
			denied = append(denied, right)
		} else if ctx.Err() != nil {
			return err
		}
		return nil
	}
	for right, call := range db.e.called {
		if err := explain(right, call); err != nil {
			return nil, err
		}
	}
	for _, t := range all.tables {
		column := t.columns[0]
		rights := map[string]string{
			"SELECT": "SELECT " + column + " FROM " + t.name + " WHERE 1 = 0",
			"INSERT": "INSERT INTO " + t.name + " (" + column + ") SELECT " + column + " FROM " + t.name + " WHERE 1 = 0",
			"UPDATE": "UPDATE " + t.name + " SET " + column + " = " + column + " WHERE 1 = 0",
			"DELETE": "DELETE FROM " + t.name + " WHERE 1 = 0",
		}
		if strings.HasSuffix(t.name, "installation") { // which has a row that is locked, and that only a migrator writes
			rights = map[string]string{"SELECT": rights["SELECT"], "UPDATE (migrated_at)": "UPDATE " + t.name + " SET migrated_at = migrated_at WHERE 1 = 0"}
		}
		for verb, st := range rights {
			if err := explain(verb+" on "+t.name, st); err != nil {
				return nil, err
			}
		}
	}
	slices.Sort(denied)
	return denied, nil
}

// sends sends a statement that changes nothing, and drops the answer.
func (db *DB) sends(ctx context.Context, statement string) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := db.pool.QueryContext(ctx, statement)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}
