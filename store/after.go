package store

import (
	"context"
	"database/sql"

	"github.com/dbjobs/dbjobs/store/engine"
)

// readFollowers reads which jobs run after these. It leaves out a job that runs after itself by way of
// others: no pass would end.
func (s *Store) readFollowers(ctx context.Context, tx *engine.Tx, ids []int64, byJob map[int64]*Snapshot) error {
	type pair struct {
		Follower
		of int64
	}
	var pairs []pair
	var followers []int64
	var f pair
	err := tx.Query(ctx, "batch_followers", engine.Args{"ids": ids}, engine.Reads(&f.of, &f.JobID, &f.Queue, &f.Priority).Each(func(fault string) error {
		if fault == "" { // else the follower's own decision says what is wrong with it
			pairs, followers = append(pairs, f), append(followers, f.JobID)
		}
		return nil
	}))
	if err != nil {
		return err
	}
	round, err := s.circles(ctx, tx, followers)
	for _, f := range pairs {
		if _, astray := round[f.JobID]; byJob[f.of] != nil && !astray {
			c := byJob[f.of]
			c.Followers = append(c.Followers, f.Follower)
		}
	}
	return err
}

// readCircles finds out which of the jobs run after themselves, or after one whose row is gone, where that may have changed.
func (s *Store) readCircles(ctx context.Context, tx *engine.Tx, n Need, byJob map[int64]*Snapshot) error {
	var look []int64
	for id, c := range byJob {
		if c.Job.afterID != 0 && (n == Check || c.Stale || c.Plan.Parked != "") {
			look = append(look, id)
		}
	}
	round, err := s.circles(ctx, tx, look)
	for id, lost := range round {
		byJob[id].Circle, byJob[id].AfterLost = !lost, lost
	}
	return err
}

// circles are the jobs that run after themselves, and, true for these, those that run after a job whose row is gone.
func (s *Store) circles(ctx context.Context, tx *engine.Tx, ids []int64) (map[int64]bool, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	round := map[int64]bool{}
	err := tx.Query(ctx, "circles", engine.Args{"ids": ids}, func(r *sql.Rows) error {
		var id int64
		var lost bool
		err := r.Scan(&id, &lost)
		round[id] = lost
		return err
	})
	return round, err
}
