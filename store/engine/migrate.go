package engine

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// Migration is a step of the schema.
type Migration struct {
	Number     int
	Name       string
	Statements []string
}

var statementEnd = lazyregexp.New(`(?m);[ \t]*$`)

// Migrations returns the migrations of the engine, in their order.
func (e *Engine) Migrations() ([]Migration, error) { return migrations(e) }

var migrations = kept((*Engine).readMigrations)

func (e *Engine) readMigrations() ([]Migration, error) {
	names, err := fs.Glob(files, "sql/"+e.Name+"/schema/*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	out := make([]Migration, 0, len(names))
	for _, path := range names {
		b, err := files.ReadFile(path)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(path[strings.LastIndex(path, "/")+1:], ".sql")
		m := Migration{Name: name}
		if m.Number, err = strconv.Atoi(name[:4]); err != nil {
			return nil, fmt.Errorf("%s: want a name that begins with four digits", path)
		}
		m.Statements = statementsOf(string(b))
		out = append(out, m)
	}
	return out, nil
}

// statementsOf splits a text at the semicolons that end lines. The comments before a statement belong to it.
func statementsOf(text string) (list []string) {
	for _, st := range statementEnd.Split(text, -1) {
		if strings.TrimSpace(commentLine.ReplaceAllString(st, "")) != "" {
			list = append(list, strings.TrimSpace(st))
		}
	}
	return list
}

// firstLine returns the first line of a statement, without the comments before it.
func firstLine(st string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(commentLine.ReplaceAllString(st, "")), "\n")
	return first
}

var commentLine = lazyregexp.New(`(?m)^--.*$`)

// LockSchema makes migrators take turns: it locks the schema until the end of the transaction.
func (db *DB) LockSchema(ctx context.Context, tx *Tx) error {
	if db.e.SchemaLock == "" || db.isSpared(schemaLock) {
		return nil
	}
	_, err := tx.q.ExecContext(ctx, db.e.SchemaLock)
	return db.Wrap("lock the schema", db.spare(schemaLock, err))
}

// ForDDL is the runner for the statements of migrations: the transaction, or the database itself if DDL
// would end a transaction.
func (db *DB) ForDDL(tx *Tx) Runner {
	if db.e.ddlCommits {
		return db
	}
	return tx
}

// ddl is ForDDL for texts.
func (db *DB) ddl(tx *Tx) querier {
	if db.e.ddlCommits {
		return db.pool
	}
	return tx.q
}

// Migrate runs the statements of a migration.
func (db *DB) Migrate(ctx context.Context, tx *Tx, m Migration) error {
	for _, st := range m.Statements {
		if _, err := db.ddl(tx).ExecContext(ctx, st); err != nil {
			return db.Wrap(fmt.Sprintf("migration %s: %s", m.Name, firstLine(st)), err)
		}
	}
	return nil
}
