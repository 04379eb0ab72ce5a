package tick_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// commands does what the commands do, and returns what they print as JSON.
func (h *hostile) commands(ctx context.Context, group []hostileCase) (string, error) {
	var out strings.Builder
	changed := func(column string) bool {
		return slices.ContainsFunc(group, func(c hostileCase) bool { return c.column.name == column })
	}
	found := !slices.ContainsFunc(group, func(c hostileCase) bool { return c.table == "jobs" || c.table == "runs" })
	failed := func(what string, v any, err error) error {
		if err == nil {
			var b []byte
			if b, err = json.Marshal(v); err == nil {
				out.Write(b)
				return nil
			}
		}
		// Its name may be another one now, or it belongs to another user. No row can be added after the greatest id,
		// and no job is removed while others run after it.
		if changed("id") && (what == "apply" || strings.HasSuffix(what, "job disable") || strings.HasSuffix(what, "job remove")) || changed("after_job_id") && strings.HasSuffix(what, "job remove") {
			return nil
		}
		if errors.Is(err, store.ErrNotFound) && strings.HasPrefix(what, "culprit") && !found {
			return nil
		}
		return fmt.Errorf("%s: %w", what, err)
	}
	var errs []error
	jobs, err := h.Jobs(ctx, store.JobFilter{})
	errs = append(errs, failed("job list", jobs, err))
	for i := range jobs {
		o, err := tick.Forecast(ctx, h.Store, &jobs[i], 3)
		errs = append(errs, failed("job show, forecast", o, err))
	}
	runs, err := h.Runs(ctx, store.RunFilter{})
	errs = append(errs, failed("run list", runs, err))
	shown := map[string]bool{} // each of the culprit, and one of each other job and state: it reads the job, and not the other runs
	for _, r := range runs {
		if key := r.Job + " " + r.State; r.JobID == 1 || !shown[key] {
			shown[key] = true
			if d, err := h.Run(ctx, r.ID); !changed("id") {
				errs = append(errs, failed("run show", d, err))
			}
		}
	}
	schedules, err := h.Schedules(ctx)
	errs = append(errs, failed("schedule list", schedules, err))
	groups, err := h.Groups(ctx)
	errs = append(errs, failed("groups", groups, err))
	pauses, err := h.Pauses(ctx, true, 100)
	errs = append(errs, failed("pauses", pauses, err))
	changes, err := h.Changes(ctx, "", "", 100)
	errs = append(errs, failed("history", changes, err))
	for _, name := range []string{"healthy 1", "culprit"} {
		v, err := h.Job(ctx, name)
		errs = append(errs, failed(name+": job show", v, err))
		gaps, err := h.Gaps(ctx, name, 10)
		errs = append(errs, failed(name+": gaps", gaps, err))
		log, err := h.JobHistory(ctx, name, 10)
		errs = append(errs, failed(name+": job history", log, err))
	}
	_, err = h.Apply(ctx, store.Definitions{Jobs: []store.Job{ticktest.Hourly("healthy 1"), ticktest.Hourly("new")}}, store.ApplyOptions{})
	errs = append(errs, failed("apply", nil, err))
	if v, err := h.Job(ctx, "culprit"); err == nil && h.changeable() {
		errs = append(errs, failed("culprit: job disable", nil, h.EnableJob(ctx, "culprit", v.Disabled, store.Author{})),
			failed("follower: job remove", nil, h.RemoveJob(ctx, "follower", store.Author{})),
			failed("culprit: job remove", nil, h.RemoveJob(ctx, "culprit", store.Author{})))
	}
	return out.String(), errors.Join(errs...)
}

// changeable: MariaDB checks all constraints of a row, whichever column changes.
func (h *hostile) changeable() bool { return h.checked || h.Server != "mariadb" }
