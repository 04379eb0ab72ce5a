package main

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dbjobs/dbjobs/store/storetest"
)

// createsTable matches a statement that makes a table, and its name.
var createsTable = regexp.MustCompile(`^CREATE TABLE (\w+)`)

// runSQL runs a statement in the story's database, and prints the rows that it returns: one row on each line, with |
// between the cells. It does so as the administrator, who lets the ticker use the tables that he makes.
func runSQL(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: sql STATEMENT")
	}
	db, done := databaseOf(ts)
	defer done()
	rows, err := db.Query(args[0])
	ts.Check(err)
	defer rows.Close()
	columns, err := rows.Columns()
	ts.Check(err)
	for rows.Next() {
		cells, into := make([]string, len(columns)), make([]any, len(columns))
		for i := range cells {
			into[i] = &cells[i]
		}
		ts.Check(rows.Scan(into...))
		_, err := fmt.Fprintln(ts.Stdout(), strings.Join(cells, "|"))
		ts.Check(err)
	}
	ts.Check(rows.Err())
	a, _ := ts.Value(theAccounts{}).(*storetest.Accounts)
	if table := createsTable.FindStringSubmatch(args[0]); table != nil && a != nil {
		ts.Check(a.GrantTable(context.Background(), table[1]))
	}
}

// databaseOf returns the story's database for its own statements. Call done after each of them.
func databaseOf(ts *testscript.TestScript) (db *sql.DB, done func()) {
	url := ts.Getenv("DBJOBS_DATABASE_URL")
	if a, _ := ts.Value(theAccounts{}).(*storetest.Accounts); a != nil {
		if a.SQL != nil {
			return a.SQL, func() {}
		}
		url = a.Admin
	}
	if url == "" {
		url = "sqlite:" + filepath.Join(ts.Getenv("HOME"), ".local/share/dbjobs/dbjobs.db")
	}
	k, _ := ts.Value(theConnections{}).(*connections)
	done = func() {}
	if k == nil {
		k = new(connections)
		done = k.close
	}
	db, err := k.statements(url)
	ts.Check(err)
	return db, done
}
