package load

import (
	"fmt"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

const dueJobs = 100_000

// BenchmarkDecide drains 100,000 due jobs, by one to eight processes, beside the best set-based SQL for the same
// writes to the same tables: a single statement that claims, advances and makes one ledger row each, with the next
// time computed in SQL. Ratios are of rates within the same run: of/sql to that statement, of/one to one process.
func BenchmarkDecide(b *testing.B) {
	for _, e := range storetest.Engines(b) {
		b.Run(e, func(b *testing.B) {
			d := storetest.Open(b, e, store.Options{})
			d.Seed(b, storetest.Seed{Jobs: dueJobs, Rules: []string{"every 5m"}, Queue: "another"})
			if r, err := ticktest.New(b, d.Store).Run(b.Context()); err != nil || r.Decided != dueJobs {
				b.Fatalf("plan: %v: %+v", err, r)
			}
			d.Clock.Add(5 * time.Minute)
			var best time.Duration
			measure := func(b *testing.B, fn func()) time.Duration {
				var least time.Duration
				for range b.N {
					b.StopTimer()
					rewind(b, d)
					b.StartTimer()
					began := time.Now()
					fn()
					if took := time.Since(began); least == 0 || took < least {
						least = took
					}
				}
				b.ReportMetric(float64(dueJobs)/least.Seconds(), "jobs/s")
				return least
			}
			b.Run("sql", func(b *testing.B) {
				best = measure(b, func() {
					for _, st := range setBased[e] {
						d.Exec(b, st)
					}
				})
				checkDrained(b, d)
			})
			var one time.Duration
			for _, n := range []int{1, 2, 4, 8} {
				b.Run(fmt.Sprint("processes=", n), func(b *testing.B) {
					var peak int64
					took := measure(b, func() {
						children := make([]ticktest.Child, n)
						for i := range children {
							children[i] = ticktest.Child{URL: d.URL, Engine: e, Now: d.Clock.Now(), Moves: true, Holder: fmt.Sprint("process ", i)}
						}
						reports, errs := ticktest.Together(b, children)
						for i := range reports {
							if errs[i] != nil {
								b.Errorf("process %d: %v", i, errs[i])
							}
							peak = max(peak, reports[i].Peak)
						}
					})
					checkDrained(b, d)
					if n == 1 {
						one = took
					}
					b.ReportMetric(best.Seconds()/took.Seconds(), "of/sql")
					b.ReportMetric(one.Seconds()/took.Seconds(), "of/one")
					b.ReportMetric(float64(peak)/1e6, "MB/process")
				})
			}
		})
	}
}

// rewind makes the jobs due again, as they were.
func rewind(b *testing.B, d *storetest.DB) {
	b.Helper()
	due := map[bool]string{true: "'2026-01-05 08:05:00'", false: "'2026-01-05T08:05:00.000000Z'"}[d.Engine == "mariadb"]
	d.Exec(b, "DELETE FROM "+d.Table("runs"))
	d.Exec(b, "UPDATE "+d.Table("plans")+" SET next_run = "+due+", runs_made = 0, last_scheduled_for = NULL, decided_through = "+
		map[bool]string{true: "'2026-01-05 08:00:00'", false: "'2026-01-05T08:00:00.000000Z'"}[d.Engine == "mariadb"])
	switch d.Engine {
	case "postgres":
		d.Exec(b, "VACUUM (FULL, ANALYZE) dbjobs.plans")
		d.Exec(b, "VACUUM (FULL, ANALYZE) dbjobs.runs")
	case "sqlite":
		d.Exec(b, "PRAGMA wal_checkpoint(TRUNCATE)")
	}
}

func checkDrained(b *testing.B, d *storetest.DB) {
	b.Helper()
	runs := d.Int(b, "SELECT count(*) FROM "+d.Table("runs"))
	jobs := d.Int(b, "SELECT count(DISTINCT job_id) FROM "+d.Table("runs")+" WHERE state = 'queued'")
	if left := d.Int(b, "SELECT count(*) FROM "+d.Table("plans")+" WHERE runs_made <> 1 OR next_run < '2026-01-05 08:10:00'"); runs != dueJobs || jobs != dueJobs || left > 0 {
		b.Errorf("%d runs of %d jobs, %d left: want %d once", runs, jobs, left, dueJobs)
	}
}

// setBased is the limit: what a database does in one go, where the next time is plain arithmetic.
var setBased = map[string][]string{
	"postgres": {`WITH due AS (
  SELECT job_id, next_run, runs_made FROM dbjobs.plans WHERE next_run <= '2026-01-05T08:05:00Z' ORDER BY next_run, job_id FOR UPDATE SKIP LOCKED
), made AS (
  INSERT INTO dbjobs.runs (id, job_id, number, occurrence, state, queue, priority, scheduled_for, interval_start, interval_end, ready_at, created_at)
  SELECT ('019b8d99-6900-7000-8000-' || lpad(to_hex(job_id), 12, '0'))::uuid, job_id, runs_made + 1,
    'at:' || to_char(next_run AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), 'queued', 'another', 0,
    next_run, next_run - interval '5 minutes', next_run, '2026-01-05T08:05:00Z', '2026-01-05T08:05:00Z'
  FROM due ON CONFLICT DO NOTHING
)
UPDATE dbjobs.plans p SET version = version + 1, next_run = p.next_run + interval '5 minutes', decided_through = '2026-01-05T08:05:00Z',
  last_scheduled_for = p.next_run, runs_made = p.runs_made + 1
FROM due WHERE p.job_id = due.job_id`},
	"mariadb": {`INSERT INTO dbjobs_runs (id, job_id, number, occurrence, state, queue, priority, scheduled_for, interval_start, interval_end, ready_at, created_at)
  SELECT CONCAT('019b8d99-6900-7000-8000-', LPAD(HEX(job_id), 12, '0')), job_id, runs_made + 1,
    CONCAT('at:', DATE_FORMAT(next_run, '%Y-%m-%dT%H:%i:%s.%fZ')), 'queued', 'another', 0,
    next_run, next_run - INTERVAL 5 MINUTE, next_run, '2026-01-05 08:05:00', '2026-01-05 08:05:00'
  FROM dbjobs_plans WHERE next_run <= '2026-01-05 08:05:00' ORDER BY next_run, job_id FOR UPDATE SKIP LOCKED`,
		`UPDATE dbjobs_plans SET version = version + 1, last_scheduled_for = next_run, next_run = next_run + INTERVAL 5 MINUTE,
  decided_through = '2026-01-05 08:05:00', runs_made = runs_made + 1 WHERE next_run <= '2026-01-05 08:05:00'`},
	"sqlite": {`INSERT INTO dbjobs_runs (id, job_id, number, occurrence, state, queue, priority, scheduled_for, interval_start, interval_end, ready_at, created_at)
  SELECT '019b8d99-6900-7000-8000-' || printf('%012x', job_id), job_id, runs_made + 1, 'at:' || next_run, 'queued', 'another', 0,
    next_run, strftime('%Y-%m-%dT%H:%M:%f000Z', next_run, '-5 minutes'), next_run, '2026-01-05T08:05:00.000000Z', '2026-01-05T08:05:00.000000Z'
  FROM dbjobs_plans WHERE next_run <= '2026-01-05T08:05:00.000000Z' ORDER BY next_run, job_id`,
		`UPDATE dbjobs_plans SET version = version + 1, last_scheduled_for = next_run, next_run = strftime('%Y-%m-%dT%H:%M:%f000Z', next_run, '+5 minutes'),
  decided_through = '2026-01-05T08:05:00.000000Z', runs_made = runs_made + 1 WHERE next_run <= '2026-01-05T08:05:00.000000Z'`},
}
