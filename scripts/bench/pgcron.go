package main

import (
	"fmt"
	"os"
	"time"
)

// pgCron adds the row of pg_cron. Its schedules have whole minutes, so a round begins at the next full minute.
func pgCron(b *bench, t *table) error {
	if os.Getenv(variables["pgcron"]) == "" {
		t.leftOut = append(t.leftOut, "pg_cron, which is not among the servers")
		return nil
	}
	d, err := b.named("pgcron") // it schedules in only one database of its server
	if err != nil {
		return err
	}
	if err := d.run(b.ctx, "DROP TABLE IF EXISTS effects", "CREATE TABLE effects (job bigint NOT NULL)"); err != nil {
		return err
	}
	stop := "SELECT cron.unschedule(jobid) FROM cron.job"
	b.later(func() {
		if _, err := d.Exec(stop); err != nil { // also after Ctrl-C, when b.ctx has ended
			b.say("pg_cron's jobs stay: %v", err)
		}
	})
	const room = 2 * time.Second // time in which the extension reads its jobs
	prepare := func() error {
		if wait := time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)); wait < 10*time.Second {
			time.Sleep(wait + room)
		}
		return d.run(b.ctx, stop, "TRUNCATE effects", "TRUNCATE cron.job_run_details",
			fmt.Sprintf("SELECT count(cron.schedule('job-' || n, '* * * * *', 'INSERT INTO effects (job) VALUES (' || n || ')')) FROM generate_series(0, %d) n", b.jobs-1))
	}
	t.add(&contender{name: "PostgreSQL: pg_cron", peer: riverTuned, prepare: prepare, run: func() (sample, error) {
		at := time.Now().Truncate(time.Minute).Add(time.Minute)
		time.Sleep(time.Until(at))
		for {
			done, err := d.int(b.ctx, "SELECT count(*) FROM cron.job_run_details WHERE status = 'succeeded'")
			if err == nil && done == b.jobs {
				done, err = d.int(b.ctx, "SELECT count(*) FROM effects")
			}
			took := time.Since(at)
			if err == nil && done == b.jobs {
				err = d.run(b.ctx, stop)
			}
			if err != nil || done == b.jobs {
				return sample{took: took}, err
			}
			if took > 50*time.Second {
				return sample{}, fmt.Errorf("%d jobs have run within %s, and the next minute begins: fewer jobs, please", done, took)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}})
	b.say("pg_cron begins at a full minute: each of its rounds waits for one")
	return nil
}
