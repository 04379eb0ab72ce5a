package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dbjobs/dbjobs/store"
)

// TestChangeIsDone: the server goes as soon as the change of a command is committed. The command has succeeded, and says what it
// could not find out. Only where JSON is wanted, which it cannot print, it fails, and says that the change is done.
func TestChangeIsDone(t *testing.T) {
	onServers(t, func(t *testing.T, c *cloud) {
		p, env := c.behindProxy(t)
		c.dbjobs("schedule", "create", "nightly", "--rule", "30 2 * * *")
		c.dbjobs("job", "create", "job", "--schedule", "nightly", "--sql", "SELECT nothing FROM nowhere")
		c.dbjobs("job", "run-now", "job")
		c.dbjobs("tick")
		days := filepath.Join(t.TempDir(), "days.txt")
		if err := os.WriteFile(days, []byte("2026-12-25\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, x := range []struct {
			line, says string
			code       int
		}{
			{"job create new --sql SELECT", "whether a pause holds the job could not be found out", exitDone},
			{"run retry job#1", `job#1 is open again, from step 1, "step 1"; when it executes could not be found out`, exitDone},
			{"run cancel job#1", "job#1: the next dbjobs tick cancels it", exitDone},
			{"job backfill job --from 2026-01-01T00:00:00Z --to 2026-01-03T00:00:00Z --again", "when the runs execute could not be found out", exitDone},
			{"job alter job --timeout 5m", "changed job", exitDone},
			{"job disable job", "whether an apply enables it again could not be found out", exitDone},
			{"job enable job --json", "the change is done, but it cannot be shown", exitDatabase},
			{"job pause job", "paused job", exitDone},
			{"job resume job", "whether another pause holds the job could not be found out", exitDone},
			{"calendar import de -f " + days, "created calendar de: 1 line", exitDone},
			{"job abort job", "whether an apply enables it again could not be found out", exitDone},
		} {
			var committed atomic.Bool
			p.sent = func(b []byte) {
				if quit := len(b) < 8; committed.Load() && !quit {
					p.refuse(true)
					p.drop()
				}
				if bytes.HasSuffix(bytes.TrimRight(bytes.ToLower(b), "\x00"), []byte("commit")) {
					committed.Store(true)
				}
			}
			var talk told
			code := run(t.Context(), strings.Fields(x.line), strings.NewReader(""), &talk, &talk, env, nil)
			if code != x.code || !strings.Contains(talk.String(), x.says) {
				t.Errorf("%s: %d: %s", x.line, code, &talk)
			}
			p.refuse(false)
		}
	})
}

// TestWaitThatCannotSeeTheEnd: who waits for the run that he has requested, and does not learn of its end, learns that it is
// requested, and which one it is.
func TestWaitThatCannotSeeTheEnd(t *testing.T) {
	home := t.TempDir()
	if code, said := invoke(t.Context(), t, home, nil, io.Discard, "job", "create", "job", "--sql", "SELECT 1"); code != exitDone {
		t.Fatal(said)
	}
	c, s := opened(t, home)
	s.Close()
	err := c.follow(t.Context(), s, &store.Run{ID: "3f0c", State: store.Queued})
	if err == nil || !strings.Contains(err.Error(), "the change is done, but the end of run 3f0c cannot be shown: ") {
		t.Error(err)
	}
}
