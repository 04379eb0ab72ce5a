// Command rows prints the result of a query in an SQLite file, for the demonstration. It shows what the jobs did
// to their tables, on machines that have no client of SQLite.
//
//	rows FILE QUERY
package main

import (
	"database/sql"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"

	_ "modernc.org/sqlite"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: rows FILE QUERY")
		os.Exit(2)
	}
	if err := show(os.Stdout, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "rows:", err)
		os.Exit(1)
	}
}

// show prints the rows below the names of their columns. It changes nothing, and makes no file.
func show(w io.Writer, file, query string) error {
	name := url.URL{Scheme: "file", OmitHost: true, Path: file, RawQuery: "mode=ro"}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return err
	}
	defer db.Close()
	rows, err := db.Query(query)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, strings.ToUpper(strings.Join(columns, "\t")))
	cells := make([]sql.NullString, len(columns))
	into := make([]any, len(columns))
	for i := range cells {
		into[i] = &cells[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		texts := make([]string, len(cells))
		for i, c := range cells {
			texts[i] = c.String
		}
		fmt.Fprintln(table, strings.Join(texts, "\t"))
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return table.Flush()
}
