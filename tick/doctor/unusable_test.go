package doctor_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/doctor"
)

// MariaDB drops an account that has made views, and goes on to list them, but nobody can read them any more. They are named,
// also to a login with the rights of a ticker, and the next migration makes them again. MySQL refuses to drop the account.
func TestViewsWithoutTheirDefiner(t *testing.T) {
	t.Parallel()
	storetest.Needs(t, "mariadb")
	d := storetest.Open(t, "mariadb", store.Options{})
	login, as := d.Account(t, "admin")
	maker, err := store.Open(t.Context(), as, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer maker.Close()
	d.Exec(t, "DROP VIEW dbjobs_v_jobs")
	if applied, err := maker.Migrate(t.Context()); err != nil || len(applied) != 1 {
		t.Fatal(err, applied)
	}
	maker.Close()
	_, ticker := d.As(t)
	if _, err := d.SQL.Exec("DROP USER " + login + "@'%'"); err != nil {
		storetest.Skip(t, "the server keeps an account that has made views: %v", err)
	}
	t.Cleanup(func() { d.Exec(t, "CREATE USER "+login+"@'%' IDENTIFIED BY 'it is dropped next'") })
	named := func(s *store.Store) (views []string) {
		t.Helper()
		r, err := doctor.Examine(t.Context(), s, doctor.Options{Clock: d.Clock.Now, Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Findings {
			if f.Check == "views" {
				name, _, _ := strings.Cut(strings.TrimPrefix(f.Problem, "nobody can read the view "), ": ")
				views = append(views, name)
			}
		}
		slices.Sort(views)
		return views
	}
	all := []string{"dbjobs_v_attempts", "dbjobs_v_changes", "dbjobs_v_errors", "dbjobs_v_gaps", "dbjobs_v_jobs", "dbjobs_v_runs", "dbjobs_v_schedules", "dbjobs_v_upcoming"}
	for who, s := range map[string]*store.Store{"admin": d.Store, "ticker": ticker} {
		if got := named(s); !slices.Equal(got, all) {
			t.Errorf("%s: %q", who, got)
		}
	}
	if applied, err := d.Migrate(t.Context()); err != nil || len(applied) != 1 {
		t.Errorf("%v: applied %q", err, applied)
	}
	for who, s := range map[string]*store.Store{"admin": d.Store, "ticker": ticker} {
		if got := named(s); len(got) > 0 {
			t.Errorf("%s, after a migration: %q", who, got)
		}
	}
	d.Int(t, "SELECT count(*) FROM dbjobs_v_jobs")
}
