package main

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/dbjobs/dbjobs/store/storetest"
)

// A condition that fails, or that remembers values, is computed for no row that a view does not show. So bob, who has
// no jobs, learns nothing about ann's jobs. The same is true if the views existed before rows had owners. Without
// owners, a view needs no additional work.
func TestViewsAreABarrier(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine == "sqlite" {
			t.Skip("has no logins")
		}
		o := newOwned(t, d)
		asBob, err := storetest.OpenSQL(t, o.asBob).Conn(t.Context()) // @seen belongs to the session
		if err != nil {
			t.Fatal(err)
		}
		defer asBob.Close()
		look := func() (learned []string) {
			t.Helper()
			for _, view := range o.named("VIEW") {
				for _, column := range columnsOf(t, asBob, d.Table(view)) {
					for _, condition := range probes(d.Engine, column) {
						if d.Engine != "postgres" {
							if _, err := asBob.ExecContext(t.Context(), "SET @seen = 0"); err != nil {
								t.Fatal(err)
							}
						}
						var n, seen int
						err := asBob.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+d.Table(view)+" WHERE "+condition).Scan(&n)
						if err == nil && d.Engine != "postgres" {
							err = asBob.QueryRowContext(t.Context(), "SELECT @seen").Scan(&seen)
						}
						if err != nil || n > 0 || seen > 0 {
							learned = append(learned, fmt.Sprintf("%s: WHERE %s: %d rows, %d seen, %v", view, condition, n, seen, err))
						}
					}
				}
			}
			return learned
		}
		for _, l := range look() {
			t.Error(l)
		}
		if d.Engine == "postgres" {
			return
		}
		o.must(o.asAdmin, "", "migrate", "--owners=false")
		if n := len(look()); n == 0 {
			t.Error("without owners, nothing was computed: the probe shows nothing")
		}
		o.must(o.asAdmin, "", "migrate", "--owners")
		for _, l := range look() {
			t.Error("with owners again: ", l)
		}
	})
}

// probes are conditions that fail, or count, when they are computed for a row.
func probes(engine, column string) []string {
	if engine == "postgres" {
		return []string{"1 / (length(" + column + "::text) * 0) > 0"}
	}
	return []string{"EXP(800 + LENGTH(COALESCE(" + column + ", ''))) > 0", "(@seen := @seen + LENGTH(COALESCE(" + column + ", '')) * 0 + 1) > 0"}
}

// columnsOf are the columns of a view.
func columnsOf(t *testing.T, c *sql.Conn, view string) []string {
	t.Helper()
	rows, err := c.QueryContext(t.Context(), "SELECT * FROM "+view+" WHERE 1 = 0")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil || rows.Err() != nil {
		t.Fatal(err, rows.Err())
	}
	return names
}
