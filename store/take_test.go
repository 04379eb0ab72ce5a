package store_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// If a statement waits for a lock until its time is over, runs are taken one by one. If the connection breaks after
// one of them was taken, that run is delivered. Otherwise nobody would execute it before its lease has ended.
func TestWhatWasTakenBeforeAnErrorIsHandedOut(t *testing.T) {
	t.Parallel()
	timeouts := map[string]error{"postgres": &pgconn.PgError{Code: "55P03"}, "mariadb": &mysql.MySQLError{Number: 1205}}
	for _, e := range storetest.Engines(t) {
		timeout, waits := timeouts[storetest.Dialect(e)]
		if !waits { // SQLite has one writer at a time
			continue
		}
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			var calls storetest.Calls
			begun := 0
			calls.Before = func(c storetest.Call) error {
				if !strings.HasPrefix(c.SQL, "INSERT INTO") || !strings.Contains(c.SQL, "attempts") {
					return nil
				}
				switch begun++; begun {
				case 1:
					return storetest.RefusedError{Err: timeout}
				case 2:
					return nil
				}
				return io.ErrUnexpectedEOF
			}
			d := storetest.Open(t, e, store.Options{Wrap: calls.Wrap})
			for _, id := range []string{"0195a3c0-0000-7000-8000-000000000001", "0195a3c0-0000-7000-8000-000000000002"} {
				d.Exec(t, "INSERT INTO "+d.Table("runs")+" (id, job_id, occurrence, state) VALUES ('"+id+"', 1, 'now:"+id+"', 'queued')")
			}
			h := store.Holder{Name: "here", Lease: time.Minute, Until: d.Clock.Now().Add(100 * 365 * 24 * time.Hour)}
			tasks, err := d.Take(t.Context(), "tick", 2, h)
			if err != nil || len(tasks) != 1 {
				t.Errorf("%d runs, %v; want the one that was taken", len(tasks), err)
			}
			if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("runs")+" WHERE state = 'running'"); n != 1 {
				t.Errorf("%d are on record as taken", n)
			}
		})
	}
}

// If the database refuses a list that ends before a run that is not taken ahead, the list is divided like any other.
func TestAListThatEndsBeforeARunIsDivided(t *testing.T) {
	t.Parallel()
	refused := map[string]error{"postgres": &pgconn.PgError{Code: "22003"}, "mariadb": &mysql.MySQLError{Number: 1264}}
	for _, e := range storetest.Engines(t) {
		refusal, known := refused[storetest.Dialect(e)]
		if !known {
			continue
		}
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			var calls storetest.Calls
			begun := 0
			calls.Before = func(c storetest.Call) error {
				if begun == 0 && strings.HasPrefix(c.SQL, "INSERT INTO") && strings.Contains(c.SQL, "attempts") {
					begun++
					return storetest.RefusedError{Err: refusal}
				}
				return nil
			}
			d := storetest.Open(t, e, store.Options{Wrap: calls.Wrap})
			for _, id := range []string{"0195a3c0-0000-7000-8000-000000000001", "0195a3c0-0000-7000-8000-000000000002"} { // of no job: none is taken ahead
				d.Exec(t, "INSERT INTO "+d.Table("runs")+" (id, job_id, occurrence, state) VALUES ('"+id+"', 1, 'now:"+id+"', 'queued')")
			}
			h := store.Holder{Name: "here", Lease: time.Minute, Ahead: 1, Until: d.Clock.Now().Add(100 * 365 * 24 * time.Hour)}
			tasks, err := d.Take(t.Context(), "tick", 2, h)
			if err != nil || len(tasks) != 1 || begun != 1 {
				t.Errorf("%d runs, %v, after %d refusals; want the first one", len(tasks), err, begun)
			}
		})
	}
}
