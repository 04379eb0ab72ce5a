package tick_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/store/storetest/bubble"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A step may write to an SQLite file for longer than a pass waits for the lock. What is due is then left to the next pass, which is
// no error. It is one if it has been due for five minutes, or for an hour while a living process has a run under way.
func TestPassBesideALongWrite(t *testing.T) {
	storetest.Needs(t, "sqlite") // it is about a file
	bubble.Test(t, func(t *testing.T) {
		d := storetest.Open(t, "sqlite", store.Options{})
		steps := []store.Step{ticktest.Step("", "SELECT 1")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "a", Own: ticktest.EveryFiveMinutes(), Steps: steps}, {Name: "long", Queue: "others", Steps: steps}}})
		ticktest.Request(t, d, "long")
		var log strings.Builder
		tk := ticktest.New(t, d.Store)
		tk.Late, tk.Log = 5*time.Minute, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		for range 12 {
			ticktest.Pass(t, tk)
			d.Clock.Add(time.Minute)
		}
		holder := store.Holder{Name: "holder", Lease: 24 * time.Hour}
		if list, err := d.Take(t.Context(), "others", 1, holder); err != nil || len(list) != 1 {
			t.Fatalf("%v: %d taken", err, len(list))
		}
		tx, err := d.SQL.BeginTx(t.Context(), nil) // immediate: it holds the lock for writing
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }() // it is done by then
		pass := func(when string, fails bool) {
			t.Helper()
			r, err := tk.Run(t.Context())
			if fails && (!errors.Is(err, store.ErrReadOnly) || !strings.Contains(err.Error(), "what is due since")) {
				t.Errorf("%s: %v, want an error", when, err)
			}
			if !fails && (err != nil || !strings.Contains(r.CutShort, "another process, writes to the database file")) {
				t.Errorf("%s: %v: %q, want no error", when, err, r.CutShort)
			}
			if r.Decided != 0 || !r.SilentSince.IsZero() || r.Unrecorded != "" || log.Len() > 0 {
				t.Errorf("%s: %+v\n%s", when, r, &log)
			}
		}
		d.Clock.Add(3 * time.Minute)
		pass("after some minutes", false)
		d.Clock.Add(6 * time.Minute)
		pass("after some more, without a process", true)
		release, err := d.Hold(holder)
		if err != nil {
			t.Fatal(err)
		}
		pass("a run is under way", false)
		tk.On = store.Hooks{Late: "long"}
		pass("the silence is not raised", false)
		d.Clock.Add(time.Hour)
		pass("for more than an hour", true)
		release()
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if r := ticktest.Pass(t, tk); r.Decided == 0 || r.CutShort != "" {
			t.Errorf("the lock is gone: %+v", r)
		}
	})
}
