package main

import (
	"fmt"
	"slices"
	"time"
)

// cost measures the processor time of small passes. It depends less on the other work of the machine.
func cost(b *bench, t *table) error {
	t.unit, t.times = time.Millisecond, 10
	if !slices.Contains(b.engines, "postgres") {
		t.leftOut = append(t.leftOut, "PostgreSQL, which is not among the engines")
		return nil
	}
	beside, err := b.named("postgres")
	if err != nil {
		return err
	}
	for _, n := range []int{0, 10, 100} {
		j, err := b.seed("postgres", jobs{n: n})
		if err != nil {
			return err
		}
		j.SetMaxIdleConns(0) // so the sessions of the harness itself have ended before
		t.add(&contender{name: fmt.Sprintf("%d due", n), prepare: func() error { return j.rewind(b) }, run: func() (sample, error) {
			before, err := beside.sessions(b, j.name)
			if err != nil {
				return sample{}, err
			}
			s, err := b.dbjobs(j.database, "tick")
			if err != nil {
				return s, err
			}
			after, err := beside.sessions(b, j.name)
			s.active = after - before
			return s, err
		}})
	}
	return nil
}

// sessions returns how long all sessions of a database, which have ended, executed something. It asks from another
// database, on PostgreSQL.
func (d *database) sessions(b *bench, of string) (time.Duration, error) {
	where := " WHERE datname = '" + of + "'"
	for {
		// A session reports its work when it ends, and its client does not wait for that.
		open, err := d.int(b.ctx, "SELECT count(*) FROM pg_stat_activity"+where)
		if err != nil {
			return 0, err
		}
		if open == 0 {
			break
		}
	}
	us, err := d.int(b.ctx, "SELECT CAST(1000 * active_time AS bigint) FROM pg_stat_database"+where)
	return time.Duration(us) * time.Microsecond, err
}
