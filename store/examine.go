package store

import (
	"cmp"
	"context"
	"database/sql"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// Damage is content of the tables that no program writes: rows that a person deleted or changed by hand, or that a
// restored copy of one table left behind.
type Damage struct {
	Kind  string
	JobID int64     // zero: no job
	At    time.Time // of the first of its rows; zero: unknown
	What  string
	Count int64
}

// damages are the kinds of damage. The statement that finds a kind has the name examine_ and the name of the kind.
// The duration says how old a row must be to count, or, if it is negative, how far ahead.
var damages = []struct {
	kind  string
	later time.Duration
}{
	{"twice", 0}, {"numbers", 0}, {"older", 0}, {"attempts", 0}, {"runs", skewed}, {"gaps", 0}, {"stuck", -skewed}, {"queued", -time.Hour},
	{"unplanned", -skewed}, {"orphans", 0}, {"links", 0}, {"after", 0}, {"groups", 0}, {"calendars", 0}, {"pauses", 0}, {"ticks", skewed},
}

// Damages looks for damage of each kind, and returns at most limit rows of each. It reads whole tables, and changes
// nothing.
func (s *Store) Damages(ctx context.Context, limit int) (list []Damage, err error) {
	for _, k := range damages {
		d := Damage{Kind: k.kind}
		a := engine.Args{"now": s.now(), "later_ms": k.later.Milliseconds(), "limit": limit}
		rd := engine.Reads(engine.Nullable(&d.JobID), engine.At(&d.At), engine.Nullable(&d.What), &d.Count)
		err = s.db.Query(ctx, "examine_"+k.kind, a, rd.Each(func(fault string) {
			if fault != "" {
				d.What = fault
			}
			list = append(list, d)
			d = Damage{Kind: k.kind}
		}))
		if err != nil {
			return list, err
		}
	}
	return list, nil
}

// Record has the records of the nominal times of one rule of a job: all nominal times after Since, up to the end of
// what its plan covers, were decided by this rule.
type Record struct {
	JobID, ScheduleID int64
	Rule, Ends        string // RFC 5545 text, and the instants at which its COUNTs end
	Since             time.Time
	Gaps              []Gap
}

// Recorded has the records of the nominal times of some jobs.
type Recorded struct {
	Rules  []Record
	Ran    map[int64]map[time.Time]bool // nominal times that have a run, by job
	Oldest map[int64]int64              // the least number of the runs that keep.runs keeps, by job
	From   map[int64]time.Time          // the first nominal time of these runs, by job
}

// Records reads the records of the nominal times of some jobs after an instant.
func (s *Store) Records(ctx context.Context, ids []int64, after time.Time) (rec Recorded, err error) {
	rec = Recorded{Ran: map[int64]map[time.Time]bool{}, Oldest: map[int64]int64{}, From: map[int64]time.Time{}}
	a := engine.Args{"ids": ids, "from": cmp.Or(after, First)}
	var r Record
	rules := engine.Reads(&r.JobID, &r.ScheduleID, &r.Rule, &r.Ends, engine.At(&r.Since))
	err = s.db.Query(ctx, "accounted_rules", a, rules.Each(func(fault string) {
		if fault == "" {
			rec.Rules = append(rec.Rules, r)
		}
		r = Record{}
	}))
	if err != nil {
		return rec, err
	}
	var job, number int64
	var at time.Time
	err = s.db.Query(ctx, "accounted_runs", a, engine.Reads(&job, engine.At(&at)).Each(func(string) {
		if rec.Ran[job] == nil {
			rec.Ran[job] = map[time.Time]bool{}
		}
		rec.Ran[job][at.UTC()] = true
	}))
	if err != nil {
		return rec, err
	}
	err = s.db.Query(ctx, "oldest_kept", a, engine.Reads(&job, engine.Nullable(&number), engine.At(&at)).Each(func(string) {
		rec.Oldest[job], rec.From[job] = number, at
		number, at = 0, time.Time{}
	}))
	if err != nil {
		return rec, err
	}
	return rec, s.addGaps(ctx, a, rec.Rules)
}

// addGaps reads the gaps of the rules.
func (s *Store) addGaps(ctx context.Context, a engine.Args, list []Record) error {
	type key struct{ job, schedule int64 }
	of := make(map[key]*Record, len(list))
	for i := range list {
		of[key{list[i].JobID, list[i].ScheduleID}] = &list[i]
	}
	var g Gap
	rd := engine.Reads(&g.JobID, &g.ScheduleID, engine.At(&g.From), engine.At(&g.Through), &g.Reason)
	return s.db.Query(ctx, "accounted_gaps", a, rd.Each(func(fault string) {
		if r := of[key{g.JobID, g.ScheduleID}]; r != nil && fault == "" {
			r.Gaps = append(r.Gaps, g)
		}
		g = Gap{}
	}))
}

// Server has the facts about the server, or the file, that a doctor checks.
type Server struct {
	engine.Missing
	Unusable      []string // views that nobody can read, with the error
	BrokenIndexes []string // of PostgreSQL: being built, or their building failed
	Behind        []Behind // of PostgreSQL: tables to which no row can be added
	Denied        []string // rights that the login lacks: "DELETE on dbjobs.runs"
	Unwritable    []string // of SQLite: files, and the folder, that this process cannot write
	Unguarded     []string // of PostgreSQL, where rows have owners: row security, policies and triggers that are missing
	Unbound       string   // why row security does not bind the login, on PostgreSQL where rows have owners; "": it does
	Settings      map[string]string
	Tables        []TableFacts // of PostgreSQL
	FileFaults    []string     // of SQLite
	FileSize      int64        // bytes, of SQLite
	FileFree      int64        // bytes of the file that are free
}

// Behind is a table whose sequence hands out numbers that its rows have already.
type Behind struct {
	Table string
	Used  int64 // the highest number of a row
	Mend  string
}

// TableFacts are PostgreSQL's statistics of a table.
type TableFacts struct {
	Name       string
	Rows, Dead int64
	Unknown    bool // the planner has no statistics of the table; false, too, where this login may not see them
}

// Server reads the facts about the server.
func (s *Store) Server(ctx context.Context) (v Server, err error) {
	if v.Missing, err = s.db.Missing(ctx); err != nil || len(v.Missing.Tables) > 0 {
		return v, err
	}
	if v.Unusable, err = s.db.Unusable(ctx); err != nil {
		return v, err
	}
	if v.Denied, err = s.db.Denied(ctx); err != nil {
		return v, err
	}
	v.Unwritable = s.db.Unwritable()
	guards, err := s.db.Engine().Guards()
	if err != nil {
		return v, err
	}
	v.Settings = map[string]string{}
	var name, value string
	var t TableFacts
	var b Behind
	for statement, scan := range map[string]func(*sql.Rows) error{
		"server_settings": engine.Reads(&name, engine.Nullable(&value)).Each(func(string) { v.Settings[name] = value }),
		"behind_sequences": engine.Reads(&b.Table, &b.Used).Each(func(string) {
			b.Mend = engine.AdvanceSequence(b.Table)
			v.Behind = append(v.Behind, b)
		}),
		"broken_indexes": engine.Reads(&name).Each(func(string) { v.BrokenIndexes = append(v.BrokenIndexes, name) }),
		"unguarded":      engine.Reads(&name).Each(func(string) { v.Unguarded = append(v.Unguarded, name) }),
		"unbound":        engine.Reads(&v.Unbound).Each(func(string) {}),
		"server_tables":  engine.Reads(&t.Name, &t.Rows, &t.Dead, &t.Unknown).Each(func(string) { v.Tables = append(v.Tables, t) }),
		"file_size":      engine.Reads(&v.FileSize, &v.FileFree).Each(func(string) {}),
		"file_faults": engine.Reads(&name).Each(func(string) {
			if name != "ok" {
				v.FileFaults = append(v.FileFaults, name)
			}
		}),
	} {
		if !s.db.Has(statement) {
			continue
		}
		if err := s.db.Query(ctx, statement, engine.Args{"names": guards}, scan); err != nil {
			return v, err
		}
	}
	return v, nil
}
