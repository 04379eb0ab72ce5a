package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// scheduleColumns are @schedule_columns, in the order in which readSchedules scans them.
const scheduleColumns = `s.id, s.name, s.rule, s.zone, s.nonexistent, s.ambiguous, s.calendar, s.on_holiday, s.description, s.manifest, s.created_at, s.job_id,
  CASE WHEN @stale THEN 1 ELSE 0 END, s.parked`

// readSchedules calls take for each schedule of a statement, with the job to which it belongs; 0: it is shared.
func (s *Store) readSchedules(ctx context.Context, q engine.Runner, statement string, a engine.Args, take func(c Schedule, job int64)) error {
	var c Schedule
	var job int64
	rd := engine.Reads(&c.ID, engine.Nullable(&c.Name), &c.Rule, &c.Zone, &c.Nonexistent, &c.Ambiguous, &c.Calendar, holidays{&c}, &c.Description, engine.Nullable(&c.Manifest),
		must{engine.At(&c.CreatedAt)}, engine.Nullable(&job), &c.stale, engine.Nullable(&c.parked))
	return q.Query(ctx, statement, a, rd.Each(func(fault string) {
		c.Fault = fault
		take(c, job)
		c, job = Schedule{}, 0
	}))
}

// holidays scans what a schedule does on holidays. That applies only if the schedule has a calendar. The calendar is
// scanned before.
type holidays struct{ of *Schedule }

func (h holidays) Scan(src any) error {
	h.of.OnHoliday = ""
	if h.of.Calendar == "" {
		return nil
	}
	return engine.Assign(&h.of.OnHoliday, src)
}

// schedulesNamed reads the shared schedules that have one of these names.
func (s *Store) schedulesNamed(ctx context.Context, q engine.Runner, names []string) (map[string]Schedule, error) {
	found := map[string]Schedule{}
	for part := range slices.Chunk(names, page) {
		err := s.readSchedules(ctx, q, "schedules_named", engine.Args{"ids": part}, func(c Schedule, _ int64) { found[c.Name] = c })
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// KnownSchedules returns the shared schedules with these names, by name.
func (s *Store) KnownSchedules(ctx context.Context, names []string) (map[string]Schedule, error) {
	return s.schedulesNamed(ctx, s.db, names)
}

// Made returns, for the schedules of definitions that the database has, when they were made, by the names that they have
// after the renames. The definitions are those of a manifest, or of none if its name is empty.
func (s *Store) Made(ctx context.Context, d Definitions, manifest string) (map[string]time.Time, error) {
	var names []string
	for i := range d.Schedules {
		names = append(names, d.Schedules[i].Name)
	}
	var renames []Rename
	for _, r := range d.RenamesInTurn() {
		if r.Kind == KindSchedule {
			names, renames = append(names, r.From), append(renames, r)
		}
	}
	there, err := s.schedulesNamed(ctx, s.db, legible(names))
	if err != nil {
		return nil, err
	}
	todo := s.renamer(ctx, s.db, d, "", manifest)
	for _, r := range renames {
		c, old := there[r.From]
		_, taken := there[r.To]
		due, err := todo.due(r, c.ID, c.Manifest, taken)
		if err != nil && !taken { // where both are there, apply says so
			return nil, err
		}
		if old && due {
			there[r.To] = c
			delete(there, r.From)
		}
	}
	made := make(map[string]time.Time, len(there))
	for name := range there {
		made[name] = there[name].CreatedAt
	}
	return made, nil
}

// countUsers counts the jobs that use the schedules.
func (s *Store) countUsers(ctx context.Context, q engine.Runner, list []Schedule) error {
	at := make(map[int64]int, len(list))
	for i, c := range list {
		at[c.ID] = i
	}
	var id int64
	var n int
	for part := range slices.Chunk(slices.Collect(maps.Keys(at)), page) {
		if err := q.Query(ctx, "schedule_users", engine.Args{"ids": part}, engine.Scan(func() { list[at[id]].Jobs = n }, &id, &n)); err != nil {
			return err
		}
	}
	return nil
}

// Schedules lists the shared schedules by name.
func (s *Store) Schedules(ctx context.Context) ([]Schedule, error) {
	var out []Schedule
	err := s.readSchedules(ctx, s.db, "schedules", engine.Args{}, func(c Schedule, _ int64) { out = append(out, c) })
	if err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(x, y Schedule) int { return cmp.Compare(x.Name, y.Name) }) // by bytes, whatever order the database has
	return out, s.countUsers(ctx, s.db, out)
}

// ScheduleStatuses lists the shared schedules by name, or only the named one, with the pauses that hold them.
func (s *Store) ScheduleStatuses(ctx context.Context, name string) ([]ScheduleStatus, error) {
	var list []Schedule
	var err error
	if name == "" {
		list, err = s.Schedules(ctx)
	} else {
		var one Schedule
		one, err = s.Schedule(ctx, name)
		list = []Schedule{one}
	}
	if err != nil {
		return nil, err
	}
	pauses, err := s.WidePauses(ctx)
	if err != nil {
		return nil, err
	}
	calendars, err := s.KnownCalendars(ctx, Definitions{Schedules: list})
	if err != nil {
		return nil, err
	}
	out := make([]ScheduleStatus, len(list))
	at := make(map[int64]int, len(list))
	for i, c := range list {
		out[i].Schedule, out[i].Users = c, []string{}
		out[i].derive(pauses, calendars[c.Calendar])
		at[c.ID] = i
	}
	for part := range slices.Chunk(slices.Collect(maps.Keys(at)), page) {
		var id int64
		var j Job
		var planned string
		rd := engine.Reads(&id, engine.Nullable(&j.Owner), engine.Nullable(&j.Name), engine.Nullable(&planned))
		err := s.db.Query(ctx, "users", engine.Args{"ids": part, "limit": usersNamed}, rd.Each(func(string) {
			c := &out[at[id]]
			c.Users, c.Planned = append(c.Users, j.FullName()), append(c.Planned, planned)
			j, planned = Job{}, ""
		}))
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// usersNamed is how many of a schedule's jobs are listed by name.
const usersNamed = 5

// Schedule finds a shared schedule by name.
func (s *Store) Schedule(ctx context.Context, name string) (Schedule, error) {
	return s.findSchedule(ctx, s.db, name)
}

func (s *Store) findSchedule(ctx context.Context, q engine.Runner, name string) (Schedule, error) {
	known, err := s.schedulesNamed(ctx, q, []string{name})
	if err != nil {
		return Schedule{}, err
	}
	c, ok := known[name]
	if !ok {
		return c, missing("schedule", name)
	}
	list := []Schedule{c}
	err = s.countUsers(ctx, q, list)
	return list[0], err
}

func (s *Store) groups(ctx context.Context, q engine.Runner) (map[string]Group, error) {
	m := map[string]Group{}
	var g Group
	err := q.Query(ctx, "groups", engine.Args{}, engine.Reads(&g.Name, &g.MaxRunning).Each(func(fault string) {
		g.Fault = fault
		m[g.Name] = g
		g = Group{}
	}))
	return m, err
}

// Groups lists the groups by name.
func (s *Store) Groups(ctx context.Context) ([]Group, error) {
	m, err := s.groups(ctx, s.db)
	if err != nil {
		return nil, err
	}
	out := make([]Group, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[name])
	}
	return out, nil
}
