package load

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// A client may stop a query of a view at any moment, as at Ctrl-C, and the server stays up. MariaDB
// 10.11.19 did not stay up if it planned to look up parts of a table with a window: see v_jobs. After
// 300 to 4,000 stops it stopped for good. DBJOBS_PROVE stops each view 5,000 times.
func TestViewsCanBeStopped(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		if storetest.Dialect(e) != "mariadb" {
			continue
		}
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			views := []string{"v_jobs"}
			if prove.Whole() {
				views = []string{"v_jobs", "v_attempts", "v_changes", "v_errors", "v_gaps", "v_runs", "v_schedules", "v_upcoming"}
			}
			d := storetest.Open(t, e, store.Options{})
			crowded(t, d, extent{3, 3, 3, 1, 1})
			for _, view := range views {
				stopOften(t, d, "SELECT * FROM "+d.Table(view), prove.Cases(100, 5000))
			}
		})
	}
}

// stopOften stops a query at moments between its beginning and its end.
func stopOften(t *testing.T, d *storetest.DB, query string, times int) {
	t.Helper()
	reader, err := d.SQL.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close() // nothing of it is needed
	var id int64
	if err := reader.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&id); err != nil {
		t.Fatal(err)
	}
	ask := func() error {
		rows, err := reader.QueryContext(t.Context(), query)
		if err != nil {
			return err
		}
		defer rows.Close() // Err has the error
		for rows.Next() {
		}
		return rows.Err()
	}
	if err := ask(); err != nil { // the first query opens the tables
		t.Fatal(err)
	}
	began := time.Now()
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	took, stopped := time.Since(began), 0
	for range times {
		ended, began := make(chan error, 1), time.Now()
		go func() { ended <- ask() }()
		time.Sleep(rand.N(took))
		if _, err := d.SQL.ExecContext(t.Context(), fmt.Sprintf("KILL QUERY %d", id)); err != nil {
			t.Fatalf("%s: the server is gone after it was stopped %d times: %v", query, stopped, err)
		}
		if err := <-ended; err != nil {
			stopped++
		} else { // the first may have taken longer than most, on a busy machine
			took = max(min(took, time.Since(began)), time.Millisecond)
		}
	}
	if stopped == 0 {
		t.Errorf("%s: it always ended before it was stopped", query)
	}
	t.Logf("%s: stopped %d of %d times", query, stopped, times)
}
