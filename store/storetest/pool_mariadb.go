package storetest

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// errNotForNext is a database of MariaDB that a test left in a state that nobody mends here.
var errNotForNext = errors.New("not for the next test")

// tableOfMariaDB is a table or a view.
type tableOfMariaDB struct {
	name, kind string
	next       sql.NullInt64 // its next id
	rows       sql.NullInt64 // as the planner estimates them
}

func (t tableOfMariaDB) ours() bool { return strings.HasPrefix(t.name, "dbjobs_") }

func tablesOfMariaDB(db *sql.DB) (list []tableOfMariaDB, err error) {
	// MySQL tells next ids and rows as it knew them for up to a day, and MariaDB does not read this.
	if _, err := db.Exec("SET @dbjobs = 0 /*!80000 , information_schema_stats_expiry = 0 */"); err != nil {
		return nil, err
	}
	rows, err := db.Query(`SELECT table_name, table_type, auto_increment, table_rows
		FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY table_name`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var t tableOfMariaDB
		if err := rows.Scan(&t.name, &t.kind, &t.next, &t.rows); err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, rows.Err()
}

// emptyMariaDB drops what a test made, and empties our tables. It leaves a database with many rows
// alone: to drop it is cheaper, and the planner has learned from them.
func emptyMariaDB(db *sql.DB) error {
	tables, err := tablesOfMariaDB(db)
	if err != nil {
		return err
	}
	statements := []string{"SET foreign_key_checks = 0"}
	for _, t := range tables {
		const many = 500
		switch {
		case t.ours() && t.kind == "VIEW":
		case t.kind == "VIEW":
			statements = append(statements, "DROP VIEW `"+t.name+"`")
		case !t.ours():
			statements = append(statements, "DROP TABLE `"+t.name+"`")
		case t.rows.Int64 > many || t.next.Int64 > many:
			return errNotForNext
		case t.name == "dbjobs_installation":
			statements = append(statements,
				"UPDATE dbjobs_installation SET instance = NULL, owners = false WHERE instance IS NOT NULL OR owners")
		default:
			statements = append(statements, "DELETE FROM "+t.name)
			if t.next.Int64 > 1 {
				statements = append(statements, "ALTER TABLE "+t.name+" AUTO_INCREMENT = 1")
			}
		}
	}
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// catalogueOfMariaDB is another text once anything but rows has changed in a database.
func catalogueOfMariaDB(db *sql.DB, migrated bool) (string, error) {
	var text string
	err := db.QueryRow(`SELECT CONCAT_WS(',', default_character_set_name, default_collation_name,
		(SELECT COUNT(*) FROM information_schema.triggers WHERE trigger_schema = DATABASE()),
		(SELECT COUNT(*) FROM information_schema.routines WHERE routine_schema = DATABASE()),
		(SELECT COUNT(*) FROM information_schema.events WHERE event_schema = DATABASE()))
		FROM information_schema.schemata WHERE schema_name = DATABASE()`).Scan(&text)
	if err != nil {
		return "", err
	}
	tables, err := tablesOfMariaDB(db)
	if err != nil {
		return "", err
	}
	for _, t := range tables {
		var name, definition string
		query := "SHOW CREATE TABLE `" + t.name + "`"
		if t.kind == "VIEW" {
			query = "SELECT table_name, view_definition FROM information_schema.views WHERE table_schema = DATABASE() AND table_name = '" + t.name + "'"
		}
		if err := db.QueryRow(query).Scan(&name, &definition); err != nil {
			return "", err
		}
		text += "\n" + definition
	}
	if !migrated {
		return text, nil
	}
	var installation string
	err = db.QueryRow(`SELECT CONCAT_WS(',', id, version, oldest, repeatable, owners, migrated_at)
		FROM dbjobs_installation`).Scan(&installation)
	return text + "\n" + installation, err
}
