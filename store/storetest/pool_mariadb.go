package storetest

import (
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// errNotForNext says that a test left a database of MariaDB in a state that is not repaired here.
var errNotForNext = errors.New("not for the next test")

// tableOfMariaDB is a table or a view.
type tableOfMariaDB struct {
	name       string
	view       bool
	definition string // of a view, or of one of our tables without its next id
	next       int    // the next id
}

func (t tableOfMariaDB) ours() bool { return strings.HasPrefix(t.name, "dbjobs_") }

var nextID = regexp.MustCompile(` AUTO_INCREMENT=(\d+)`)

// tablesOfMariaDB reads the tables and views that there are. The server makes most of
// information_schema anew for each query: to ask it for all of this took 15 ms.
func tablesOfMariaDB(db *sql.DB) (list []tableOfMariaDB, err error) {
	views := map[string]string{}
	err = pairs(db, "SELECT table_name, view_definition FROM information_schema.views WHERE table_schema = DATABASE()", func(name, definition string) error {
		views[name] = definition
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = pairs(db, "SHOW FULL TABLES", func(name, _ string) error {
		definition, view := views[name]
		list = append(list, tableOfMariaDB{name: name, view: view, definition: definition})
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, t := range list {
		if t.view || !t.ours() {
			continue
		}
		var definition string
		if err := db.QueryRow("SHOW CREATE TABLE "+t.name).Scan(&t.name, &definition); err != nil {
			return nil, err
		}
		if next := nextID.FindStringSubmatch(definition); next != nil {
			if list[i].next, err = strconv.Atoi(next[1]); err != nil {
				return nil, err
			}
		}
		list[i].definition = nextID.ReplaceAllString(definition, "")
	}
	return list, nil
}

// pairs calls fn for each row of two texts.
func pairs(db *sql.DB, query string, fn func(a, b string) error) error {
	rows, err := db.Query(query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var a, b string
		if err := rows.Scan(&a, &b); err != nil {
			return err
		}
		if err := fn(a, b); err != nil {
			return err
		}
	}
	return rows.Err()
}

// many is a number of rows. Above it, to drop the database is cheaper than to empty it, and the
// planner has learned from the rows.
const many = 500

// emptyMariaDB drops what a test made, and empties our tables. It returns what the catalogue says
// then. It reads the tables only once, before it changes anything.
func emptyMariaDB(db *sql.DB, migrated bool) (catalogue string, err error) {
	tables, err := tablesOfMariaDB(db)
	if err != nil {
		return "", err
	}
	var left []tableOfMariaDB
	statements := []string{"SET foreign_key_checks = 0"}
	for _, t := range tables {
		switch {
		case t.ours():
			left = append(left, t)
		case t.view:
			statements = append(statements, "DROP VIEW `"+t.name+"`")
		default:
			statements = append(statements, "DROP TABLE `"+t.name+"`")
		}
	}
	if migrated {
		more, err := emptyingMariaDB(db, left)
		if err != nil {
			return "", err
		}
		statements = append(statements, more...)
	}
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			return "", fmt.Errorf("%s: %w", s, err)
		}
	}
	return catalogueOfMariaDB(db, left, migrated)
}

// emptyingMariaDB returns the statements that empty our tables. A DELETE of nothing is a trip, too,
// and half of the tables have nothing to delete.
func emptyingMariaDB(db *sql.DB, ours []tableOfMariaDB) (statements []string, err error) {
	var counts []string
	for _, t := range ours {
		if !t.view {
			counts = append(counts, fmt.Sprintf("SELECT '%s', (SELECT COUNT(*) FROM (SELECT 1 FROM %[1]s LIMIT %d) AS x)", t.name, many+1))
		}
	}
	rows := map[string]int{}
	err = pairs(db, strings.Join(counts, " UNION ALL "), func(table, count string) error {
		rows[table], err = strconv.Atoi(count)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, t := range ours {
		switch {
		case t.view:
		case rows[t.name] > many || t.next > many:
			return nil, errNotForNext
		case t.name == "dbjobs_installation":
			statements = append(statements,
				"UPDATE dbjobs_installation SET instance = NULL, owners = false WHERE instance IS NOT NULL OR owners")
		case rows[t.name] > 0:
			statements = append(statements, "DELETE FROM "+t.name)
		}
		if t.next > 1 {
			statements = append(statements, "ALTER TABLE "+t.name+" AUTO_INCREMENT = 1")
		}
	}
	return statements, nil
}

// catalogueOfMariaDB returns a text that changes once anything but rows has changed in a database with
// these tables.
func catalogueOfMariaDB(db *sql.DB, tables []tableOfMariaDB, migrated bool) (string, error) {
	var text string
	err := db.QueryRow(`SELECT CONCAT_WS(',', default_character_set_name, default_collation_name,
		(SELECT COUNT(*) FROM information_schema.triggers WHERE trigger_schema = DATABASE()),
		(SELECT COUNT(*) FROM information_schema.routines WHERE routine_schema = DATABASE()),
		(SELECT COUNT(*) FROM information_schema.events WHERE event_schema = DATABASE()))
		FROM information_schema.schemata WHERE schema_name = DATABASE()`).Scan(&text)
	if err != nil {
		return "", err
	}
	for _, t := range tables {
		text += "\n" + t.definition
	}
	if !migrated {
		return text, nil
	}
	var installation string
	err = db.QueryRow(`SELECT CONCAT_WS(',', id, version, oldest, repeatable, owners, migrated_at)
		FROM dbjobs_installation`).Scan(&installation)
	return text + "\n" + installation, err
}
