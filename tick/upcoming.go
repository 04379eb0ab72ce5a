package tick

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
)

// UpcomingRun is a future nominal time.
type UpcomingRun struct {
	At  time.Time `json:"at"`
	Job string    `json:"job"`
}

// UpcomingRow is a future nominal time. In the result of NextOfEach it is the next time of its job.
type UpcomingRow struct {
	UpcomingRun
	Schedule string `json:"schedule,omitempty"` // when the job runs, in a few words; only in NextOfEach
	// Later is how many more times the job has before the end; only in NextOfEach. It is counted up to countedLater.
	Later *int `json:"later,omitempty"`
	// LaterMore says that there are more of these times than were counted.
	LaterMore bool `json:"later_more,omitempty"`
}

// countedLater bounds how many times of a job are counted. A rule for each minute has fewer in a week.
const countedLater = 11_000

// UpcomingHoliday is a time of a job that a calendar takes out or moves.
type UpcomingHoliday struct {
	Job string `json:"job"`
	rules.Holiday
}

// UpcomingRuns are nominal times of jobs in an interval, the next ones first.
type UpcomingRuns struct {
	From time.Time     `json:"from"`
	To   time.Time     `json:"to"`
	Runs []UpcomingRow `json:"runs"`
	// More says that there are more times than the limit.
	More bool `json:"more"`
	// Idle has the jobs with a schedule that have no time now, because they are disabled, parked or paused.
	Idle []string `json:"idle"`
	// Skipped are the times that somebody has decided not to run.
	Skipped []SkippedRun `json:"skipped"`
	// Holidays are the first times in the interval that calendars take out or move: at most the limit.
	Holidays []UpcomingHoliday `json:"holidays,omitempty"`
}

// SkippedRun is a nominal time of a job that is not to run.
type SkippedRun struct {
	Job string `json:"job"`
	store.Skip
}

// Upcoming finds the next nominal times of jobs from the instant from on, or from now on if from is past, and before the
// instant to: at most limit. Times that a pass has already decided, such as that of a run that waits, are not included.
func Upcoming(ctx context.Context, s *store.Store, jobs []store.JobStatus, from, to time.Time, limit int) (UpcomingRuns, error) {
	return upcoming(ctx, s, jobs, from, to, limit, limit+1)
}

// NextOfEach is Upcoming with only the next time of each job, and the number of its further times: at most limit jobs, those
// that are due first. So a job that runs each minute takes one row, and does not hide the others. words returns a short text
// that says when a job runs.
func NextOfEach(ctx context.Context, s *store.Store, jobs []store.JobStatus, from, to time.Time, limit int, words func(store.Job) string) (UpcomingRuns, error) {
	u, err := upcoming(ctx, s, jobs, from, to, limit, 1)
	if err != nil {
		return u, err
	}
	of := make(map[string]*store.JobStatus, len(jobs))
	for i := range jobs {
		of[jobs[i].FullName()] = &jobs[i]
	}
	for rows := range slices.Chunk(u.Runs, 50) { // so that memory is bounded
		shown := make([]store.JobStatus, len(rows))
		for i := range rows {
			shown[i] = *of[rows[i].Job]
		}
		times, err := UpcomingByJob(ctx, s, shown, u.From, to, 1+countedLater)
		if err != nil {
			return u, err
		}
		for i := range rows {
			later := max(0, len(times[i].Times)-1)
			rows[i].Schedule, rows[i].Later, rows[i].LaterMore = words(shown[i].Job), &later, times[i].More
		}
	}
	return u, nil
}

// upcoming does the work of Upcoming and NextOfEach. It looks at the next times of each job, at most "each" of them.
func upcoming(ctx context.Context, s *store.Store, jobs []store.JobStatus, from, to time.Time, limit, each int) (UpcomingRuns, error) {
	u := UpcomingRuns{From: from, To: to, Runs: []UpcomingRow{}, Idle: []string{}, Skipped: []SkippedRun{}}
	list, faults, err := s.RulesOfJobs(ctx, store.IDs(jobs))
	if err != nil {
		return u, err
	}
	now, err := s.Now(ctx)
	if err != nil {
		return u, err
	}
	if u.From = from; from.Before(now) {
		u.From = now
	}
	end := to // a time at or after end cannot be among the next ones
	for i := range jobs {
		v := new(jobs[i])
		decide.Foresee(v, now)
		n, err := decide.NewNominal(&v.Job, list[v.ID])
		if v.Rests() || err != nil || faults[v.ID] != "" {
			if len(list[v.ID]) > 0 || v.RepeatAfter > 0 || err != nil || faults[v.ID] != "" {
				u.Idle = append(u.Idle, v.FullName())
			}
			continue
		}
		for _, k := range v.Skips {
			if !k.At.Before(u.From) && k.At.Before(to) {
				u.Skipped = append(u.Skipped, SkippedRun{v.FullName(), k})
			}
		}
		for _, t := range n.Before(now, u.From, end, v, each) {
			u.Runs = append(u.Runs, UpcomingRow{UpcomingRun: UpcomingRun{t, v.FullName()}})
		}
		for _, h := range n.Holidays(u.From.Add(-time.Microsecond), to, limit) {
			u.Holidays = append(u.Holidays, UpcomingHoliday{v.FullName(), h})
		}
		if len(u.Holidays) > 8*(limit+1) {
			u.Holidays = firstHolidays(u.Holidays, limit)
		}
		if len(u.Runs) > 8*(limit+1) {
			u.Runs = next(u.Runs, limit+1)
			end = u.Runs[limit].At.Add(time.Microsecond)
		}
	}
	u.Holidays = firstHolidays(u.Holidays, limit)
	if u.Runs = next(u.Runs, limit+1); len(u.Runs) > limit {
		u.Runs, u.More = u.Runs[:limit], true
	}
	return u, nil
}

// next sorts runs by their times, and keeps the first ones.
func next(list []UpcomingRow, most int) []UpcomingRow {
	slices.SortFunc(list, func(x, y UpcomingRow) int {
		return cmp.Or(x.At.Compare(y.At), cmp.Compare(x.Job, y.Job))
	})
	return list[:min(most, len(list))]
}

// firstHolidays sorts holidays by their times, and keeps the first ones.
func firstHolidays(list []UpcomingHoliday, most int) []UpcomingHoliday {
	slices.SortFunc(list, func(x, y UpcomingHoliday) int { return cmp.Or(x.At.Compare(y.At), cmp.Compare(x.Job, y.Job)) })
	return list[:min(most, len(list))]
}
