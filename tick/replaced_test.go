package tick_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// restore puts a copy of a database in its place.
func restore(t *testing.T, copied []byte, file string) {
	t.Helper()
	if err := errors.Join(os.WriteFile(file+".copy", copied, 0o600), os.Rename(file+".copy", file)); err != nil {
		t.Fatal(err)
	}
}

// The file of the database may be replaced while a tick sleeps: its next pass uses the new file. A pass whose file is replaced
// ends with an error, which names the runs that it has under way, instead of recording them where nobody sees it.
func TestForMeetsAReplacedFile(t *testing.T) {
	t.Parallel()
	storetest.Needs(t, "sqlite")
	url := storetest.URL(t, "sqlite")
	file := strings.TrimPrefix(url, "sqlite:")
	clock := storetest.NewClock(time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC))
	s, err := store.Open(t.Context(), url, store.Options{Create: true, Clock: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	job := store.Job{Name: "job", Own: &store.Schedule{Rule: "every 10s"}, Steps: []store.Step{ticktest.Call("")}}
	if _, err := s.Apply(t.Context(), store.Definitions{Jobs: []store.Job{job}}, store.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Rest()
	backup, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	during := false
	tk := ticktest.New(t, s)
	tk.Now = clock.Now
	tk.Executors["doing"] = ticktest.Doing(func(context.Context, executor.Request) (executor.Result, error) {
		if during {
			restore(t, backup, file)
		}
		return executor.Result{}, nil
	})
	sleeps := 0
	tk.Sleep = func(_ context.Context, wait time.Duration) {
		if sleeps++; sleeps == 3 {
			if beside, err := os.Stat(file + "-wal"); err == nil {
				t.Errorf("%s is left while the tick sleeps", beside.Name())
			}
			restore(t, backup, file)
		}
		clock.Add(wait)
	}
	r, err := tk.RunFor(t.Context(), 55*time.Second)
	if err != nil || r.Succeeded < 5 {
		t.Fatalf("%v: %+v", err, r)
	}
	runs, err := s.Runs(t.Context(), store.RunFilter{})
	if err != nil || len(runs) == 0 || len(runs) >= r.Succeeded {
		t.Errorf("%v: the new file has %d of %d runs", err, len(runs), r.Succeeded)
	}
	during = true
	clock.Add(10 * time.Second)
	r, err = tk.RunFor(t.Context(), 25*time.Second)
	if !errors.Is(err, store.ErrReplaced) || !errors.Is(err, store.ErrUnreachable) || !strings.Contains(err.Error(), "shows as running until its lease ends") || r.Succeeded > 0 {
		t.Errorf("%v: %+v", err, r)
	}
}
