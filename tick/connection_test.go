package tick_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A run waits for a connection where there are as many as there may be, and uses up no attempt for that.
func TestNoAttemptIsUsedUpWithoutAConnection(t *testing.T) {
	for _, e := range storetest.Engines(t) {
		if e != "postgres" {
			continue // elsewhere only an administrator bounds connections
		}
		t.Run(e, func(t *testing.T) {
			d := storetest.Open(t, e, store.Options{})
			const jobs = 12
			var defs store.Definitions
			for i := range jobs {
				defs.Jobs = append(defs.Jobs, store.Job{Name: fmt.Sprintf("job%02d", i), Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Step("", "SELECT pg_sleep(0.1)")}})
			}
			ticktest.Apply(t, d, defs)
			ticktest.Run(t, d)
			d.Clock.Add(6 * time.Minute)
			var name string
			if err := d.SQL.QueryRow("SELECT current_database()").Scan(&name); err != nil {
				t.Fatal(err)
			}
			d.Exec(t, "ALTER DATABASE "+name+" CONNECTION LIMIT 4")
			var probes sync.WaitGroup // after them the store has as many connections as there may be
			for range 4 {
				probes.Go(func() { _, _ = d.Probe(t.Context(), "probe", "tick") })
			}
			probes.Wait()
			tk := ticktest.New(t, d.Store)
			tk.Concurrency = jobs
			r, err := tk.Run(t.Context())
			if err != nil || r.Succeeded != jobs {
				t.Errorf("%v: %+v", err, r)
			}
			d.Exec(t, "ALTER DATABASE "+name+" CONNECTION LIMIT -1")
			if n := d.Int(t, "SELECT count(*) FROM dbjobs.attempts"); n != jobs {
				t.Errorf("%d attempts for %d runs", n, jobs)
			}
		})
	}
}

// A step that is atomic, and whose connection is lost before its COMMIT was sent, has done nothing: it is delivered again,
// and uses up no attempt. A text that may have committed something is not, and neither is one that is not atomic.
func TestAnAtomicStepThatLosesItsConnectionIsHandedOutAgain(t *testing.T) {
	for _, c := range []struct {
		name, pause, state string
		atomic             bool
	}{
		{"atomic", "SELECT %s", store.Succeeded, true},
		{"plain", "SELECT %s", store.Failed, false},
		{"may commit", "DO SLEEP(1)", store.Failed, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				if d.Engine == "sqlite" {
					t.Skip("no server ends its connections")
				}
				nap := map[string]string{"postgres": "pg_sleep(1)", "mariadb": "SLEEP(1)"}[d.Engine]
				pause := c.pause
				switch {
				case c.name != "may commit":
					pause = fmt.Sprintf(pause, nap)
				case d.Engine == "postgres":
					pause = "DO $$BEGIN PERFORM pg_sleep(1); END$$"
				}
				d.Exec(t, "CREATE TABLE effects (n int)")
				st := ticktest.Step("", "INSERT INTO effects VALUES (1)")
				st.Spec = []byte(fmt.Sprintf(`{"sql": ["INSERT INTO effects VALUES (1)", %q, "INSERT INTO effects VALUES (2)"], "atomic": %v}`, pause, c.atomic))
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{st}}}})
				ticktest.Request(t, d, "job")
				ticktest.DecideOnly(t, d)
				go func() {
					for killed := 0; killed == 0 && t.Context().Err() == nil; time.Sleep(20 * time.Millisecond) {
						if d.Engine == "postgres" {
							_ = d.SQL.QueryRow("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%pg_sleep(1)%' AND pid <> pg_backend_pid() AND state = 'active'").Scan(&killed)
							continue
						}
						var id int
						if d.SQL.QueryRow("SELECT ID FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND INFO LIKE '%SLEEP(1)' AND ID <> CONNECTION_ID()").Scan(&id) == nil {
							if _, err := d.SQL.Exec(fmt.Sprintf("KILL %d", id)); err == nil {
								killed++
							}
						}
					}
				}()
				ticktest.Run(t, d)
				d.Clock.Add(10 * time.Second)
				ticktest.Run(t, d)
				list, err := d.Runs(t.Context(), store.RunFilter{Job: "job"})
				if err != nil || len(list) != 1 || list[0].State != c.state || list[0].Attempt != 1 {
					t.Fatalf("%v: %+v", err, list)
				}
				if n := d.Int(t, "SELECT count(*) FROM effects"); n != map[string]int{"atomic": 2, "plain": 1, "may commit": 0}[c.name] {
					t.Errorf("%d effects", n)
				}
				t.Logf("%s, error %q", list[0].State, list[0].Error)
			})
		})
	}
}
