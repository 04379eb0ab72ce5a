package executor_test

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// A step needs only the trips of its session and of its statements, and those that its text makes necessary: a question
// whether a transaction is open, a savepoint, a witness.
func TestTripsOfAStep(t *testing.T) {
	plain, block := []string{"INSERT INTO effects VALUES (1)"}, []string{"BEGIN", "INSERT INTO effects VALUES (1)", "COMMIT"}
	for name, c := range map[string]struct {
		atomic bool
		sql    []string
		want   map[string]string
	}{
		"plain":  {false, plain, map[string]string{"sqlite": "exec", "postgres": "exec", "mariadb": "exec"}},
		"block":  {false, block, map[string]string{"sqlite": "exec exec exec exec", "postgres": "exec exec exec", "mariadb": "exec exec exec query", "mysql": "exec exec exec query exec"}}, // MySQL asks twice
		"atomic": {true, plain, map[string]string{"sqlite": "begin exec commit", "postgres": "begin exec commit", "mariadb": "begin exec commit"}},
		"atomic with words of others": {true, []string{"UPDATE effects SET n = 2 /* role, names, encoding, recall, timestamp */"},
			map[string]string{"sqlite": "begin exec commit", "postgres": "begin exec commit", "mariadb": "begin exec commit"}},
		"atomic with a text that could commit": {true, []string{"INSERT INTO effects VALUES (1);;"}, map[string]string{"postgres": "begin exec exec exec commit"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, e := range storetest.Engines(t) {
				want := strings.Fields(cmp.Or(c.want[e], c.want[storetest.Dialect(e)]))
				if len(want) == 0 {
					continue
				}
				calls := &storetest.Calls{}
				d := storetest.Open(t, e, store.Options{Wrap: calls.Wrap})
				d.Exec(t, "CREATE TABLE effects (n int)")
				s := newStepper(t, d, d.Store)
				if err := s.step(plain...); err != nil { // also asks for the login
					t.Fatal(err)
				}
				spec, err := json.Marshal(executor.SQLSpec{SQL: executor.Texts(c.sql...), Atomic: c.atomic})
				if err != nil {
					t.Fatal(err)
				}
				s.r.Spec, s.r.EndIn = spec, func(context.Context, *sql.Tx, executor.Result) error { return nil }
				calls.Reset()
				if _, err := s.x.Execute(t.Context(), s.r); err != nil {
					t.Fatal(err)
				}
				var kinds []string
				for _, call := range calls.All() {
					if call.Kind != storetest.Connect && !strings.Contains(call.SQL, "CONNECTION_ID") {
						kinds = append(kinds, call.Kind)
					}
				}
				if !slices.Equal(kinds, want) {
					t.Errorf("%s: %v, want %v", e, kinds, want)
				}
			}
		})
	}
}
