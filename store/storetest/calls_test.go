package storetest_test

import (
	"database/sql"
	"errors"
	"slices"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

var errBroken = errors.New("the connection broke")

// A commit that a hook breaks before the call does not take place. A commit that a hook breaks after the call does.
func TestABrokenCommit(t *testing.T) {
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			d := storetest.Open(t, e, store.Options{})
			d.Exec(t, "CREATE TABLE marks (n int)")
			breaks := func(c storetest.Call) error {
				if c.Kind == storetest.Commit {
					return errBroken
				}
				return nil
			}
			for want, c := range []*storetest.Calls{{Before: breaks}, {After: breaks}} {
				db, err := d.JobDB(store.Options{Wrap: c.Wrap})
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				db.SetMaxIdleConns(1)
				if err := insertOne(t, db); !errors.Is(err, errBroken) {
					t.Fatalf("commit: %v", err)
				}
				if n := d.Int(t, "SELECT count(*) FROM marks"); n != want {
					t.Errorf("%d rows, want %d", n, want)
				}
				// The broken connection is not used again.
				var n int
				if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM marks").Scan(&n); err != nil || n != want {
					t.Errorf("afterwards: %d, %v", n, err)
				}
				var kinds []string
				for i, call := range c.All() {
					if call.N != i+1 {
						t.Errorf("call %d has the number %d", i+1, call.N)
					}
					kinds = append(kinds, call.Kind)
				}
				all := []string{storetest.Connect, storetest.Begin, storetest.Exec, storetest.Commit, storetest.Connect, storetest.Query}
				if !slices.Equal(kinds, all) {
					t.Errorf("calls: %v, want %v", kinds, all)
				}
			}
		})
	}
}

func insertOne(t *testing.T, db *sql.DB) error {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(t.Context(), "INSERT INTO marks VALUES (1)"); err != nil {
		return err
	}
	return tx.Commit()
}
