// Package pgcron reads the jobs of pg_cron, from the rows of cron.job in a database, or from a file with these
// rows. Its SQL is for a foreign system, so it is here and not with the SQL of dbjobs.
package pgcron

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/intake"
	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// Row is a row of cron.job. Its columns differ between versions.
type Row struct {
	ID       int64   `json:"jobid"`
	Schedule string  `json:"schedule"`
	Command  string  `json:"command"`
	Node     string  `json:"nodename"`
	Database string  `json:"database"`
	User     string  `json:"username"`
	Active   *bool   `json:"active"`  // nil: it is active
	Name     *string `json:"jobname"` // nil: it has none
}

// server returns the server on which the command runs, or "" for the one of pg_cron.
func (r *Row) server() string {
	if slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, r.Node) || strings.HasPrefix(r.Node, "/") {
		return ""
	}
	return r.Node
}

// runsIn returns the name of the database in which the command runs.
func (r *Row) runsIn() string { return intake.At(r.Database, r.server()) }

// Options has what the rows do not say.
type Options struct {
	Source  string
	Zone    string // cron.timezone; empty: GMT
	Targets intake.Targets
	From    time.Time // clock changes are examined for a year from here
}

// Convert makes jobs from the rows.
func Convert(rows []Row, o Options) *intake.Result {
	zone, unknown := o.Zone, ""
	if zone == "" || strings.EqualFold(zone, "GMT") || zone == "Etc/UTC" {
		zone = "UTC"
	}
	if _, err := rules.Parse("every 1h", rules.Defaults{Zone: zone}); err != nil {
		unknown, zone = fmt.Sprintf("%s is no zone here (%v), so UTC is taken. ", zone, err), "UTC"
	}
	r := &intake.Result{Source: o.Source, Zone: zone}
	for _, row := range rows {
		r.Databases = append(r.Databases, row.runsIn())
		r.Items = append(r.Items, item(row, zone, o))
	}
	if r.Imported() > 0 {
		r.Head = []string{
			"All jobs are disabled. To move one: SELECT cron.unschedule(NUMBER) in its database, delete disabled: true here, and apply.",
			"Zone: " + unknown + "pg_cron reads times in cron.timezone, which is GMT by default; a file does not tell it, and newer versions tell it to superusers only (--zone).",
			"Overlap: pg_cron lets all runs of a job wait for the one before. Here one waits, and later times are a recorded gap. As with pg_cron: overlap: wait-all.",
			"Missed: pg_cron forgets the times at which its server was down. Here the latest one runs afterwards. As with pg_cron: missed: skip.",
			"History is kept with the runs (dbjobs run list), as in cron.job_run_details, and deleted by keep.",
		}
	}
	return r
}

var seconds = lazyregexp.New(`^([1-9]|[1-5][0-9]) seconds?$`)

// item makes a job from a row, or says why it cannot.
func item(row Row, zone string, o Options) intake.Item {
	name := ""
	if row.Name != nil {
		name = *row.Name
	}
	it := intake.Item{Place: fmt.Sprintf("job %d", row.ID), Source: strings.TrimSpace(fmt.Sprintf("%s %s: %s", name, row.Schedule, row.Command))}
	note := func(format string, args ...any) { it.Notes = append(it.Notes, fmt.Sprintf(format, args...)) }
	if strings.TrimSpace(row.Command) == "" {
		it.Reason = "It has no command; nothing is lost."
		return it
	}
	j := &store.Job{Name: intake.Kept(name)}
	if j.Name == "" {
		j.Name = intake.NameOf(row.Command)
	}
	if why := when(j, row.Schedule, zone, o.From, note); why != "" {
		it.Reason = why
		return it
	}
	if row.Active != nil && !*row.Active {
		note("It is not active in pg_cron either.")
	}
	if row.server() != "" {
		note("It ran on the server %s; give the job a target that leads there.", row.server())
	}
	it.Notes = append(it.Notes, o.Targets.Note(row.runsIn(), row.User))
	j.Steps = []store.Step{intake.Statement("step 1", row.Command, o.Targets.Of(row.runsIn()))}
	it.Definition = j
	return it
}

var macros = map[string]string{"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *"}

// when gives the job its rule, or returns why it cannot have one.
func when(j *store.Job, schedule, zone string, from time.Time, note func(string, ...any)) (reason string) {
	schedule = strings.TrimSpace(schedule)
	if m := seconds.FindStringSubmatch(schedule); m != nil {
		j.Own = &store.Schedule{Rule: "every " + m[1] + "s", Zone: zone}
		note("pg_cron counts the seconds from the start of the last run, here they are counted from midnight UTC of 1970. A trigger each minute needs dbjobs tick --for 55s.")
		return ""
	}
	if schedule == "@reboot" {
		j.OnStartup = true
		note("pg_cron runs it when the server starts; here it runs once for each start that a tick reports with --startup-id. Once a tick has seen it disabled, it runs at the next start after it is enabled.")
		return ""
	}
	text := schedule
	if five, found := macros[schedule]; found {
		text = five
	}
	list := strings.Fields(text)
	if len(list) != 5 {
		return fmt.Sprintf("%.60q is no schedule of pg_cron that is known here; write the job by hand.", schedule)
	}
	fields := [5]string(list)
	days := slices.DeleteFunc(strings.Split(fields[2], ","), func(s string) bool { return s == "$" })
	last := len(days) < strings.Count(fields[2], ",")+1
	plain := fields
	if plain[2] = strings.Join(days, ","); last && len(days) == 0 {
		plain[2] = "1"
	}
	c, err := intake.ReadCron(plain)
	if err == nil && last {
		if c.LastDay = true; len(days) == 0 {
			c.Day = 0
		}
	}
	own := &store.Schedule{Zone: zone}
	if err == nil {
		own.Rule, err = c.Rule(plain)
	}
	if err != nil {
		return fmt.Sprintf("%v; write the job by hand.", err)
	}
	if last {
		set := strings.Fields(own.Rule)
		if set[2] += ",L"; len(days) == 0 {
			set[2] = "L"
		}
		note("$, the last day of the month, is L here.")
		own.Rule = strings.Join(set, " ")
	}
	if text != schedule {
		own.Rule = schedule
	}
	if fields[2] != "*" && fields[4] != "*" && !c.DayStar && !c.WeekdayStar {
		note("It runs on days that match %s, and on days that match %s, here as in pg_cron: either is enough.", fields[2], fields[4])
	}
	nights, err := c.Nights(own, intake.Plain, "pg_cron", from)
	if err != nil {
		return fmt.Sprintf("%v; write the job by hand.", err)
	}
	for _, night := range nights {
		note("%s", night)
	}
	j.Own = own
	return ""
}
