package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const eventsName = "MariaDB: its event scheduler"

// events adds the row of MariaDB's own scheduler: an event for each job, all from the same instant.
func events(b *bench, t *table) error {
	d, err := b.fresh("mariadb")
	if err != nil {
		return err
	}
	var on string
	if err := d.QueryRowContext(b.ctx, "SELECT @@event_scheduler").Scan(&on); err != nil {
		return err
	}
	if on != "ON" {
		t.leftOut = append(t.leftOut, "MariaDB's event scheduler, which is off on this server")
		return nil
	}
	if err := d.run(b.ctx, "CREATE TABLE effects (job bigint NOT NULL)"); err != nil {
		return err
	}
	var at time.Time
	lead := 5 * time.Second // longer than it takes to make the events
	prepare := func() error {
		for {
			at = time.Now().Add(lead).Truncate(time.Second)
			if err := d.makeEvents(b.ctx, b.jobs, at); err != nil {
				return err
			}
			if time.Now().Before(at.Add(-100 * time.Millisecond)) {
				return nil
			}
			lead *= 2
		}
	}
	t.add(&contender{name: eventsName, peer: eventsName, prepare: prepare, run: func() (sample, error) {
		time.Sleep(time.Until(at))
		for {
			done, err := d.int(b.ctx, "SELECT count(*) FROM effects")
			if err == nil && done == b.jobs {
				done, err = d.int(b.ctx, "SELECT count(*) FROM information_schema.events WHERE event_schema = schema() AND last_executed IS NOT NULL")
			}
			if err != nil || done == b.jobs {
				return sample{took: time.Since(at)}, err
			}
			if time.Since(at) > 5*time.Minute {
				return sample{}, fmt.Errorf("%d events have run after 5 minutes", done)
			}
			time.Sleep(2 * time.Millisecond)
		}
	}})
	return nil
}

// makeEvents replaces the events by events that begin at an instant.
func (d *database) makeEvents(ctx context.Context, n int, at time.Time) error {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("job_%06d", i))
	}
	const side = 8
	errs := make([]error, side)
	var wait sync.WaitGroup
	for k := range side {
		wait.Go(func() {
			for i := k; i < n && errs[k] == nil; i += side {
				errs[k] = d.run(ctx, fmt.Sprintf("CREATE OR REPLACE EVENT %s ON SCHEDULE EVERY 1 DAY STARTS '%s' ON COMPLETION PRESERVE DO INSERT INTO effects (job) VALUES (%d)",
					names[i], at.UTC().Format("2006-01-02 15:04:05"), i))
			}
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return d.run(ctx, "TRUNCATE TABLE effects")
}
