package crash

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// attempt identifies a row of attempts, and a row of effects that belongs to it.
type attempt struct {
	run, step    string
	fence, tried int
}

// readAttempts reads attempts and effects, and compares them.
func (w *world) readAttempts(out *record, runs []store.Run, byID map[string]*runRecord, keys map[string]string) error {
	rows, err := w.d.SQL.Query("SELECT CAST(run_id AS CHAR(36)), number, step_name, fence, attempt, state, COALESCE(error, '') FROM " + w.d.Table("attempts") + " ORDER BY run_id, number")
	if err != nil {
		return err
	}
	defer rows.Close()
	made, fences := map[string]int{}, map[string]int{}
	states := map[attempt]string{}
	failed := map[attempt]int{}   // attempts, by run and step
	done := map[attempt]attempt{} // the attempt that succeeded, by run and step
	for rows.Next() {
		var a attempt
		var number int
		var state, message string
		if err := rows.Scan(&a.run, &number, &a.step, &a.fence, &a.tried, &state, &message); err != nil {
			return err
		}
		made[a.run]++
		fences[a.run] = max(fences[a.run], a.fence)
		if number != made[a.run] {
			out.wrong = append(out.wrong, fmt.Sprintf("%s has no attempt %d", keys[a.run], made[a.run]))
		}
		if state == store.Running {
			out.wrong = append(out.wrong, fmt.Sprintf("%s: an attempt is running still", keys[a.run]))
		}
		states[a] = state
		step := attempt{run: a.run, step: a.step}
		if a.tried != failed[step]+1 {
			out.wrong = append(out.wrong, fmt.Sprintf("%s: step %s had failed %d times, and attempt %d began: a delivery that did not come back is no attempt", keys[a.run], a.step, failed[step], a.tried))
		}
		if state == store.Failed {
			failed[step]++
		}
		if state == store.Succeeded {
			if _, twice := done[step]; twice {
				out.wrong = append(out.wrong, fmt.Sprintf("%s: step %s was done again after its end was on record", keys[a.run], a.step))
			}
			done[step] = a
		}
		if r := byID[a.run]; r != nil {
			r.tries = append(r.tries, a.step+" "+state)
			r.touched = r.touched || state == store.Lost || state == "cut" || lostConnection.MatchString(message)
		}
	}
	for _, r := range runs {
		if r.Attempts != made[r.ID] || r.Fence != fences[r.ID] {
			out.wrong = append(out.wrong, fmt.Sprintf("%s counts %d attempts and %d deliveries; there are %d and %d", keys[r.ID], r.Attempts, r.Fence, made[r.ID], fences[r.ID]))
		}
		if r.State == store.Running {
			out.wrong = append(out.wrong, keys[r.ID]+" is running still")
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return w.readEffects(out, byID, keys, states, done)
}

func (w *world) readEffects(out *record, byID map[string]*runRecord, keys map[string]string, states map[attempt]string, done map[attempt]attempt) error {
	rows, err := w.d.SQL.Query("SELECT run, step, fence, attempt FROM effects ORDER BY run, step, fence, attempt")
	if err != nil {
		return err
	}
	defer rows.Close()
	count := map[attempt]int{}                       // of each attempt
	all, tries := map[string]int{}, map[string]int{} // of each step
	for a := range states {
		tries[a.run+a.step]++
	}
	for rows.Next() {
		var a attempt
		if err := rows.Scan(&a.run, &a.step, &a.fence, &a.tried); err != nil {
			return err
		}
		count[a]++
		all[a.run+a.step]++
		r := byID[a.run]
		if r == nil {
			continue // pruned
		}
		r.effects = append(r.effects, a.step)
		end, ended := done[attempt{run: a.run, step: a.step}]
		switch _, known := states[a]; {
		case !known:
			out.wrong = append(out.wrong, fmt.Sprintf("%s: step %s took effect outside of any attempt", keys[a.run], a.step))
		case count[a] > 1 && a.step != bareStep, all[a.run+a.step] > tries[a.run+a.step]:
			out.wrong = append(out.wrong, fmt.Sprintf("%s: an attempt of step %s took effect twice", keys[a.run], a.step))
		case ended && (a.fence > end.fence || a.fence == end.fence && a.tried > end.tried):
			out.wrong = append(out.wrong, fmt.Sprintf("%s: step %s took effect again after its end was on record", keys[a.run], a.step))
		case atomicSteps[a.step] && a != end:
			out.wrong = append(out.wrong, fmt.Sprintf("%s: atomic step %s took effect and its end is not on record", keys[a.run], a.step))
		}
	}
	for step, end := range done {
		if count[end] == 0 {
			out.wrong = append(out.wrong, fmt.Sprintf("%s: step %s is done and took no effect", keys[step.run], step.step))
		}
	}
	return rows.Err()
}

// readPlans reads the plans, the pauses and the changes. The text of a plan ends with the id of its
// last run: the run's key replaces it.
func (w *world) readPlans(out *record, keys map[string]string) error {
	plan := []string{"'plan'", "j.name", "COALESCE(p.parked, '-')", "COALESCE(p.last_state, '-')", "p.streak", "p.cycles", "p.runs_made", "COALESCE(p.startup_ids, '-')", "COALESCE(p.skips, '-')",
		"CASE WHEN p.next_run IS NULL THEN '-' ELSE CAST(p.next_run AS CHAR(26)) END", "COALESCE(CAST(p.last_run_id AS CHAR(36)), '-')"}
	pause := []string{"'pause'", "j.name", "p.reason", "CASE WHEN p.resumed_at IS NULL THEN 'holds' ELSE 'resumed' END"}
	change := []string{"'change'", "subject", "action", "reason"}
	of := " p JOIN " + w.d.Table("jobs") + " j ON j.id = p."
	for _, query := range []string{
		"SELECT " + w.joined(plan) + " FROM " + w.d.Table("plans") + of + "job_id",
		"SELECT " + w.joined(pause) + " FROM " + w.d.Table("pauses") + of + "subject_id",
		"SELECT " + w.joined(change) + " FROM " + w.d.Table("changes"),
	} {
		lines, err := w.strings(query)
		if err != nil {
			return err
		}
		for _, l := range lines {
			at := strings.LastIndex(l, " ") + 1
			if key := keys[l[at:]]; key != "" {
				l = l[:at] + key
			}
			out.add(l)
		}
	}
	slices.Sort(out.lines)
	return nil
}

// joined returns columns as one text.
func (w *world) joined(columns []string) string {
	if w.d.Engine == "mariadb" {
		return "CONCAT_WS(' ', " + strings.Join(columns, ", ") + ")"
	}
	return strings.Join(columns, " || ' ' || ")
}

// readGaps reads the nominal times that a job's gaps stand for.
func (w *world) readGaps(out *record, j *store.JobStatus, ran map[time.Time]bool) error {
	gaps, err := w.d.Gaps(context.Background(), j.Name, 1000)
	if err != nil {
		return err
	}
	for _, g := range gaps {
		rule, err := rules.Parse(g.Rule, rules.Defaults{})
		if err != nil {
			return err
		}
		for at := g.From; ; {
			if at, err = rule.Next(at); err != nil {
				return err
			}
			if at.IsZero() || at.After(g.Through) {
				break
			}
			if ran[at] {
				if g.Reason == store.Skipped {
					out.wrong = append(out.wrong, fmt.Sprintf("skipped, and runs: %s %s", j.Name, clock(at)))
				}
				continue
			}
			line := fmt.Sprintf("gap %s %s %s", j.Name, g.Reason, clock(at))
			if slices.Contains(out.lines, line) {
				out.wrong = append(out.wrong, "decided twice: "+line)
			}
			out.lines = append(out.lines, line)
		}
	}
	return nil
}

// readSkips reads the skipped times that have not come yet. They must be in no run and in no gap.
func (w *world) readSkips(out *record, jobs []store.JobStatus, ran map[int64]map[time.Time]bool) error {
	rows, err := w.d.SQL.Query("SELECT job_id, skips FROM " + w.d.Table("plans") + " WHERE skips IS NOT NULL")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var plan store.Plan
		if err := rows.Scan(&id, &plan.Skips); err != nil {
			return err
		}
		i := slices.IndexFunc(jobs, func(j store.JobStatus) bool { return j.ID == id })
		for _, k := range plan.SkipList() {
			if ran[id][k.At] {
				out.wrong = append(out.wrong, fmt.Sprintf("to be skipped, and runs: job %d %s", id, clock(k.At)))
			}
			if i < 0 { // it is removed
				continue
			}
			for _, line := range out.lines {
				if strings.HasPrefix(line, "gap "+jobs[i].Name+" ") && strings.HasSuffix(line, " "+clock(k.At)) {
					out.wrong = append(out.wrong, "to be skipped, and decided: "+line)
				}
			}
		}
	}
	return rows.Err()
}

// lostConnection matches the errors of attempts whose connection was broken: by a fault, or by a driver that met one.
var lostConnection = regexp.MustCompile(`injected|bad connection|invalid connection|connection to the server was lost|conn closed|EOF|reset by peer|broken pipe`)
