package tick_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// If nobody sets the number of runs that execute side by side, the free connections of the server determine it: a pass
// begins with four, and goes on with more or fewer. A file has no such limit. If somebody sets a number, the server is
// not asked.
func TestPlacesAreAShareOfWhatTheServerHasLeft(t *testing.T) {
	for _, c := range []struct{ left, given, places int }{{1000, 0, 8}, {24, 0, 6}, {3, 0, 2}, {1000, 3, 3}} {
		t.Run(fmt.Sprint(c.left, "/", c.given), func(t *testing.T) {
			storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
				places := c.places
				if d.Engine == "sqlite" && c.given == 0 {
					places = 4
				}
				const runs = 24
				queued(t, d, runs)
				// The first runs have begun before the question. A run that comes after the answer leaves when the
				// allowed number of runs are here.
				asked, full := make(chan struct{}), make(chan struct{})
				var mu sync.Mutex
				var begun, here, most int
				tk := ticktest.NewDoing(t, d, func(ctx context.Context, _ executor.Request) (executor.Result, error) {
					mu.Lock()
					begun, here = begun+1, here+1
					wait := full
					if c.given == 0 && begun <= 4 {
						wait = asked
					} else if here > most {
						if most = here; most == places {
							close(full)
						}
					}
					mu.Unlock()
					select {
					case <-wait:
					case <-ctx.Done():
					}
					mu.Lock()
					here--
					mu.Unlock()
					return executor.Result{}, ctx.Err()
				})
				calls := storetest.Calls{Rewrite: func(text string) string {
					switch {
					case strings.Contains(text, "max_connections"):
						return fmt.Sprintf("SELECT 'connections', %d", c.left)
					case strings.Contains(text, "Threads_connected"):
						return "SELECT '', 0"
					}
					return text
				}}
				tk.Store, tk.Concurrency, tk.Queues = ticktest.OpenBeside(t, d, "", store.Options{Wrap: calls.Wrap}), c.given, []string{"others"}
				tk.Log = slog.New(heard{asked, "runs side by side"})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				r, err := tk.Work(ctx)
				if err != nil || r.Succeeded != runs || most != places {
					t.Errorf("%v: %d of %d succeeded, at most %d at once; want %d", err, r.Succeeded, runs, most, places)
				}
			})
		})
	}
}

// A run that has ended frees its place before its end is on record, and frees it once: there are never more runs at a
// time than places.
func TestAPlaceIsGivenAwayOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		const runs, places = 60, 3
		queued(t, d, runs)
		var mu sync.Mutex
		var here, most int
		tk := ticktest.NewDoing(t, d, func(ctx context.Context, _ executor.Request) (executor.Result, error) {
			count := func(more int) {
				mu.Lock()
				defer mu.Unlock()
				here += more
				most = max(most, here)
			}
			count(1)
			defer count(-1)
			_, err := d.Now(ctx) // so that others can begin meanwhile
			return executor.Result{}, err
		})
		tk.Concurrency, tk.Queues = places, []string{"others"}
		r, err := tk.Work(t.Context())
		if err != nil || r.Succeeded != runs || most > places {
			t.Errorf("%v: %d of %d succeeded, at most %d at once; there are %d places", err, r.Succeeded, runs, most, places)
		}
	})
}

// A run whose atomic step may have committed, because the answer of its COMMIT was lost, goes on with its next step in its place:
// the place is not given to another run meanwhile.
func TestAPlaceIsKeptWhileACommitIsInDoubt(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (n int)")
		const runs, places = 4, 2
		atomic := ticktest.AtomicStep("INSERT INTO effects VALUES (1)")
		atomic.Name = "atomic"
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Queue: "others", Overlap: "allow", MaxRunning: runs, Steps: []store.Step{atomic, ticktest.Call("then")}}}})
		for range runs {
			ticktest.Request(t, d, "job")
		}
		ticktest.DecideOnly(t, d)
		var mu sync.Mutex
		var here, most, inserted, lost int
		calls := storetest.Calls{After: func(c storetest.Call) error {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case c.Kind == storetest.Exec && strings.Contains(c.SQL, "effects"):
				inserted++
			case c.Kind == storetest.Commit && inserted == places && lost == 0:
				lost++
				return io.ErrUnexpectedEOF
			}
			return nil
		}}
		crowded := make(chan struct{})
		tk := ticktest.New(t, ticktest.OpenBeside(t, d, "", store.Options{Wrap: calls.Wrap}))
		tk.Executors["doing"] = ticktest.Doing(func(context.Context, executor.Request) (executor.Result, error) {
			mu.Lock()
			if here++; here > most {
				if most = here; most == places+1 {
					close(crowded)
				}
			}
			mu.Unlock()
			select {
			case <-crowded:
			case <-time.After(time.Second):
			}
			mu.Lock()
			here--
			mu.Unlock()
			return executor.Result{}, nil
		})
		tk.Concurrency, tk.Queues = places, []string{"others"}
		r, err := tk.Work(t.Context())
		if err != nil || r.Succeeded != runs || lost != 1 || most > places {
			t.Errorf("%v: %d of %d succeeded, at most %d at once; there are %d places; %d answers were lost", err, r.Succeeded, runs, most, places, lost)
		}
		if n := d.Int(t, "SELECT count(*) FROM effects"); n != runs {
			t.Errorf("%d effects", n)
		}
	})
}

// heard closes a channel when something is logged.
type heard struct {
	is   chan struct{}
	what string
}

func (h heard) Enabled(context.Context, slog.Level) bool { return true }
func (h heard) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h heard) WithGroup(string) slog.Handler            { return h }

func (h heard) Handle(_ context.Context, r slog.Record) error {
	if r.Message == h.what {
		close(h.is)
	}
	return nil
}
