package engine

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dbjobs/dbjobs/store/storetest/bubble"
)

// An attempt waits for a session of another attempt, but for no longer than it takes to open one.
func TestAttemptsShareAFewSessions(t *testing.T) {
	const opening = 10 * time.Millisecond
	text := []string{"SELECT 1"}
	for _, c := range []struct {
		name     string
		waited   time.Duration // by attempts before
		released time.Duration // when one of the sessions in use is released; 0: it is not
		well     bool
		after    time.Duration // when the attempt has its session
		sessions int
	}{
		{"no session is released", 0, 0, true, opening, 3},
		{"a session is released", 0, 4 * time.Millisecond, true, 4 * time.Millisecond, 2},
		{"a session is released too late", 0, 11 * time.Millisecond, true, opening, 3},
		{"a session ends", 0, 4 * time.Millisecond, false, 4 * time.Millisecond, 2},
		{"attempts have waited for long", openingsWaited*opening + 1, 4 * time.Millisecond, true, 0, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := "sqlite:" + filepath.Join(t.TempDir(), "jobs.db")
			bubble.Test(t, func(t *testing.T) { // no time goes by while a session is opened
				db, err := New(file, Options{Create: true})
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				p, err := db.JobSessions(Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer p.Close()
				take := func() *Session {
					s, err := p.Take(t.Context(), text)
					if err != nil {
						t.Fatal(err)
					}
					return s
				}
				first, second := take(), take()
				p.opening, p.waited = opening, c.waited
				if c.released > 0 {
					time.AfterFunc(c.released, func() { first.Release(c.well) })
				}
				began := time.Now()
				third := take()
				if after := time.Since(began); after != c.after {
					t.Errorf("the third attempt has a session after %s, want %s", after, c.after)
				}
				if c.released == 0 {
					first.Release(true)
				}
				time.Sleep(time.Second) // a session that ends is closed beside the one that is opened in its place
				synctest.Wait()
				if n := p.pool.Stats().OpenConnections; n != c.sessions {
					t.Errorf("%d sessions are open, want %d", n, c.sessions)
				}
				second.Release(true)
				third.Release(true)
			})
		})
	}
}
