// Package pgagent reads the jobs of pgAgent from its tables. Its SQL is for a foreign system, so it is here and
// not with the SQL of dbjobs.
package pgagent

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/intake"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/lazyregexp"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// Job is a job with its steps and schedules.
type Job struct {
	ID        int64      `json:"jobid"`
	Name      string     `json:"jobname"`
	Text      string     `json:"jobdesc"`
	Host      string     `json:"jobhostagent"`
	Enabled   bool       `json:"jobenabled"`
	Steps     []Step     `json:"steps"`
	Schedules []Schedule `json:"schedules"`
}

// Step is a step of a job.
type Step struct {
	Name     string `json:"jstname"`
	Enabled  bool   `json:"jstenabled"`
	Kind     string `json:"jstkind"` // s: SQL, b: batch
	Code     string `json:"jstcode"`
	Connect  string `json:"jstconnstr"` // may hold a password: it is never shown
	Database string `json:"jstdbname"`
	OnError  string `json:"jstonerror"` // f: fail, s: succeed, i: go on
}

// Schedule is a schedule of a job. A list in which nothing is set means all.
type Schedule struct {
	Name       string      `json:"jscname"`
	Enabled    bool        `json:"jscenabled"`
	Start      time.Time   `json:"-"` // jscstart
	End        *time.Time  `json:"-"` // jscend
	Minutes    []bool      `json:"jscminutes"`
	Hours      []bool      `json:"jschours"`
	Weekdays   []bool      `json:"jscweekdays"`  // from Sunday
	Monthdays  []bool      `json:"jscmonthdays"` // the 32nd is the last day
	Months     []bool      `json:"jscmonths"`
	Exceptions []Exception `json:"exceptions"`

	never bool // it begins at no time
}

// Exception removes times from a schedule: those of a date, those of a time of day, or a single one.
type Exception struct {
	Date *string `json:"jexdate"` // 2026-12-24
	Time *string `json:"jextime"` // 02:30:00
}

// ErrAbsent says that the database has no pgAgent.
var ErrAbsent = errors.New("this database has no table pgagent.pga_job; pgAgent is in one database, usually postgres")

// Query reads all jobs, and the zone in which the server reads times.
func Query(ctx context.Context, db *sql.DB) (jobs []Job, zone string, err error) {
	var there bool
	err = db.QueryRowContext(ctx, `SELECT to_regclass('pgagent.pga_job') IS NOT NULL,
		(SELECT coalesce(reset_val, setting) FROM pg_settings WHERE name = 'TimeZone')`).Scan(&there, &zone)
	if err != nil || !there {
		return nil, "", errors.Join(err, map[bool]error{true: ErrAbsent}[err == nil])
	}
	rows, err := db.QueryContext(ctx, `SELECT (to_jsonb(j) || jsonb_build_object(
		'steps', (SELECT coalesce(jsonb_agg(to_jsonb(s) ORDER BY s.jstname, s.jstid), '[]') FROM pgagent.pga_jobstep s WHERE s.jstjobid = j.jobid),
		'schedules', (SELECT coalesce(jsonb_agg(to_jsonb(c) || jsonb_build_object('exceptions',
			(SELECT coalesce(jsonb_agg(to_jsonb(x) ORDER BY x.jexid), '[]') FROM pgagent.pga_exception x WHERE x.jexscid = c.jscid)) ORDER BY c.jscid), '[]')
			FROM pgagent.pga_schedule c WHERE c.jscjobid = j.jobid)))::text
		FROM pgagent.pga_job j ORDER BY j.jobid`)
	if err != nil {
		return nil, "", err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, "", err
		}
		var j Job
		if err := json.Unmarshal([]byte(text), &j); err != nil {
			return nil, "", fmt.Errorf("a job of pgAgent: %w", err)
		}
		jobs = append(jobs, j)
	}
	return jobs, zone, rows.Err()
}

// Options has what the jobs do not say.
type Options struct {
	Source  string
	Zone    string
	Targets intake.Targets
	Now     time.Time // schedules that have ended are left out; clock changes are examined for a year from here
}

// Convert makes jobs from the jobs of pgAgent.
func Convert(jobs []Job, o Options) *intake.Result {
	r := &intake.Result{Source: o.Source, Zone: o.Zone}
	for i := range jobs {
		for _, s := range jobs[i].Steps {
			if s.Kind != "b" {
				r.Databases = append(r.Databases, runsIn(s))
			}
		}
		r.Items = append(r.Items, item(r, &jobs[i], o))
	}
	if r.Imported() > 0 {
		r.Head = []string{
			"All jobs are disabled. To move one: UPDATE pgagent.pga_job SET jobenabled = false, delete disabled: true here, and apply.",
			"Zone: pgAgent reads times in the TimeZone of its server, taken as " + o.Zone + " (--zone).",
			"Overlap: pgAgent starts no job whose last run goes on. Here one run waits for that; so it is with overlap: skip.",
			"Missed: pgAgent runs a time that was missed once, afterwards; so does this.",
			"Steps run in the order of their names, as in pgAgent. A batch is run by /bin/sh, which the settings of the host have to allow, and by the program that its first line names.",
		}
	}
	return r
}

func item(r *intake.Result, job *Job, o Options) intake.Item {
	it := intake.Item{Place: fmt.Sprintf("job %d", job.ID), Source: job.Name}
	note := func(format string, args ...any) { it.Notes = append(it.Notes, fmt.Sprintf(format, args...)) }
	j := &store.Job{Name: intake.Kept(job.Name), Description: strings.TrimSpace(job.Text)}
	if j.Name == "" {
		j.Name = fmt.Sprintf("pgagent-%d", job.ID)
	}
	if !job.Enabled {
		note("It is not enabled in pgAgent either.")
	}
	if job.Host != "" {
		note("It ran on the agent %s only; give the job a queue that a worker there serves.", job.Host)
	}
	names := map[string]bool{}
	for _, s := range job.Steps {
		if !s.Enabled {
			note("The step %s is not enabled, and is left out.", s.Name)
			continue
		}
		j.Steps = append(j.Steps, step(s, names, o, note))
	}
	if len(j.Steps) == 0 {
		it.Reason = "It has no step that is enabled; nothing is lost."
		return it
	}
	if last := &j.Steps[len(j.Steps)-1]; last.OnFailure == store.StepNext { // there is none, and the run would fail with the step
		last.OnFailure = store.StepSucceed
	}
	var own []store.Schedule
	for _, s := range job.Schedules {
		switch sc, reason := schedule(&s, len(job.Schedules) > 1, o, note); {
		case reason != "":
			note("The schedule %s is left out: %s", s.Name, reason)
		default:
			own = append(own, sc)
			if len(job.Schedules) == 1 {
				bounds(j, &s, o)
			}
		}
	}
	switch {
	case len(own) == 0 && len(job.Schedules) > 0:
		it.Reason = strings.Join(it.Notes[len(it.Notes)-len(job.Schedules):], " ") + " Write the job by hand, if it is to run."
		return it
	case len(own) == 0:
		note("It has no schedule, so it runs on request only.")
	case len(own) == 1:
		j.Own = &own[0]
	default:
		for i := range own {
			own[i].Name = fmt.Sprintf("%s %d", j.Name, i+1)
			j.Schedules = append(j.Schedules, own[i].Name)
		}
		r.Schedules = append(r.Schedules, own...)
	}
	it.Definition = j
	return it
}

// interpreter matches the first line of a script that names the program which reads it. That program takes a script
// as an argument, too.
var interpreter = lazyregexp.New(`^#![ \t]*(/\S+)(?:[ \t]+([^\n]*\S))?[ \t]*\n`)

// scriptFlag returns the flag before a script for an interpreter, or "" if it is not known.
func scriptFlag(path, flags string) string {
	words := strings.Fields(flags)
	name := filepath.Base(path)
	if name == "env" && len(words) == 1 {
		name = words[0]
	}
	switch name = strings.TrimRight(name, "0123456789."); name {
	case "sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "python":
		return "-c"
	case "perl", "ruby", "node":
		return "-e"
	}
	return ""
}

// batch makes the step of a script. pgAgent writes the script into a file and runs that, so its first line may name
// another program than /bin/sh.
func batch(s Step, note func(string, ...any)) store.Step {
	code := strings.ReplaceAll(s.Code, "\r\n", "\n") // as pgAgent does
	if m := interpreter.FindStringSubmatch(code); m != nil && m[1]+m[2] != "/bin/sh" {
		if flag := scriptFlag(m[1], m[2]); flag != "" {
			line := "exec " + intake.Verbatim(m[1])
			for _, word := range append(strings.Fields(m[2]), flag, code) {
				line += " " + intake.Verbatim(word)
			}
			return intake.Program("shell", executor.ProgramSpec{Run: []string{line}})
		}
		note("The step %s begins with %s: pgAgent let that program run it, here /bin/sh does. Make it an exec step that runs a file.", s.Name, strings.TrimSpace(m[0]))
	}
	code, remark := intake.WithoutFacts(code)
	if remark != "" {
		note("The step %s: %s", s.Name, remark)
	}
	return intake.Program("shell", executor.ProgramSpec{Run: []string{code}})
}

// pair matches a word and its value in a connection string of libpq, in which the value may have quotes.
var pair = lazyregexp.New(`(\w+)\s*=\s*(?:'((?:[^'\\]|\\.)*)'|(\S*))`)

// databaseOf returns the database that a connection string names, with its server, or "". Nothing else of it may be shown.
func databaseOf(connect string) string {
	parts := map[string]string{}
	if strings.HasPrefix(connect, "postgresql://") || strings.HasPrefix(connect, "postgres://") {
		u, err := url.Parse(connect)
		if err != nil || strings.Contains(u.Path, "@") || u.User == nil && strings.Contains(connect, "@") { // the password has a sign in it that ends the host, and is read as other parts
			return ""
		}
		parts["dbname"], parts["host"], parts["port"] = strings.TrimPrefix(u.Path, "/"), u.Hostname(), u.Port()
		for name, values := range u.Query() {
			parts[name] = values[0]
		}
	} else {
		for _, m := range pair.FindAllStringSubmatch(connect, -1) {
			parts[m[1]] = m[2] + m[3]
		}
	}
	server := cmp.Or(parts["host"], parts["hostaddr"])
	if strings.HasPrefix(server, "/") { // a socket of the server on which pgAgent runs
		server = ""
	}
	if port := parts["port"]; port != "" && port != "5432" {
		server = net.JoinHostPort(cmp.Or(server, "localhost"), port)
	}
	return intake.At(parts["dbname"], server)
}

// runsIn returns the name of the database in which a step of SQL runs.
func runsIn(s Step) string {
	if s.Connect != "" {
		return cmp.Or(databaseOf(s.Connect), "another server")
	}
	return s.Database
}

// step makes a step. Its name must differ from the other names.
func step(s Step, names map[string]bool, o Options, note func(string, ...any)) (out store.Step) {
	name := intake.Kept(s.Name)
	for n, first := 2, name; names[name] || name == ""; n++ {
		name = strings.TrimSpace(fmt.Sprintf("%s %d", first, n))
	}
	names[name] = true
	if s.Kind == "b" {
		out = batch(s, note)
	} else {
		database := runsIn(s)
		if s.Connect != "" {
			note("The step %s has a connection string of its own, which may hold a password and is not shown: make it a target of the host settings.", s.Name)
		}
		out = intake.Statement("", s.Code, o.Targets.Of(database))
		note("%s", strings.Replace(o.Targets.Note(database, "the agent"), "It ran", "The step "+s.Name+" ran", 1))
	}
	out.Name = name
	switch s.OnError {
	case "s":
		out.OnFailure = store.StepNext
		note("The step %s is marked as succeeded when it fails; here it is failed, and the run goes on.", s.Name)
	case "i":
		out.OnFailure = store.StepNext
	}
	return out
}
