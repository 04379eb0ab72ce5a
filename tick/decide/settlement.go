package decide

import (
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// Settlement looks ahead from a decision that has made one run. It returns what the next decision would write if that run
// succeeded and nothing else happened in the meantime. It returns nil if the next decision would write more than the facts of
// the run in the plan, such as runs of other jobs, or if its outcome is less certain. Then the next decision is made when the
// run has ended.
//
// Settlement calls Job to look ahead, because no other function knows the policies.
func Settlement(now time.Time, c *store.Snapshot, made *store.Decision, p *Pass) *store.Settlement {
	plan := made.Plan
	if len(c.Runs)+c.Queue.Runs > 0 || c.Stale || c.AfterChanged || c.Group != nil || len(made.Made) != 1 || made.Made[0].State != store.Queued || plan.Parked != "" ||
		made.Replan || made.Pause != "" || made.Remove != "" {
		return nil
	}
	plan.Version++
	run := made.Made[0]
	run.State, run.FinishedAt = store.Succeeded, now
	was := c.Plan
	c.Plan, c.Runs = plan, []store.Run{run}
	next := Job(now, c, p)
	c.Plan, c.Runs = was, nil
	plan.LastRunID, plan.LastState, plan.LastFinishedAt, plan.LastSuccessAt, plan.Streak = run.ID, run.State, now, now, 0
	plan.Cycles++
	only := next.Plan == plan && len(next.Updates) == 1 && len(next.Retention) == 1 && !next.Park && !next.Replan && next.Pause == "" && next.Remove == "" &&
		len(next.Made)+len(next.Gaps)+len(next.Cancel)+len(next.Events)+len(next.Ends)+len(next.Met) == 0
	if !only {
		return nil
	}
	u, kept := &next.Updates[0], &next.Retention[0]
	return &store.Settlement{JobID: plan.JobID, Version: plan.Version, Keep: u.ExpiresAt.Sub(u.Run.FinishedAt), Below: kept.Below}
}
