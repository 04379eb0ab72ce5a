// Package mysqlevents reads the events of MySQL and MariaDB from information_schema. Its SQL is for a foreign
// system, so it is here and not with the SQL of dbjobs.
package mysqlevents

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/intake"
	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// Event is a row of information_schema.EVENTS. Times are wall times of its zone. An empty time is NULL.
type Event struct {
	Schema, Name, Definer, Zone, Body, Type string
	At, Value, Field, Starts, Ends          string
	SQLMode, Status, Completion, Comment    string
	Collation                               string // of texts that come from no column
}

// Server is what the server reports about itself.
type Server struct {
	Zone     string // of SYSTEM: a name such as UTC or CEST
	TimeZone string // of new sessions, as is SQLMode
	SQLMode  string
	MariaDB  bool

	Collation string // of texts that come from no column, in the session of a job
}

// UTC reports whether the zone of the server is UTC.
func (s Server) UTC() bool {
	return s.Zone == "UTC" || s.Zone == "GMT" || s.Zone == "Etc/UTC" || s.Zone == "Coordinated Universal Time"
}

// same reports whether a new session has the zone of an event. A zone whose name says nothing here is itself only.
func (s Server) same(zone string) bool {
	known := func(zone string) string {
		if name, shift, err := zoneOf(zone, map[bool]string{true: "UTC", false: "SYSTEM"}[s.UTC()]); err == nil && shift == 0 {
			return name
		}
		return zone
	}
	return known(zone) == known(s.TimeZone)
}

// System reports whether an event has the zone of the server.
func System(events []Event) bool {
	return slices.ContainsFunc(events, func(e Event) bool { return e.Zone == "SYSTEM" })
}

// Query reads the events of the database of the connection.
func Query(ctx context.Context, db *sql.DB) (events []Event, s Server, err error) {
	if err = db.QueryRowContext(ctx, `SELECT @@system_time_zone, @@global.time_zone, @@global.sql_mode, LOCATE('MariaDB', @@version) > 0,
		@@collation_connection`).Scan(&s.Zone, &s.TimeZone, &s.SQLMode, &s.MariaDB, &s.Collation); err != nil {
		return nil, s, err
	}
	// The table is empty to a login without the privilege; only this statement is refused.
	if _, err := db.ExecContext(ctx, "SHOW EVENTS"); err != nil {
		return nil, s, fmt.Errorf("see its events, which takes the privilege EVENT: %w", err)
	}
	rows, err := db.QueryContext(ctx, `SELECT EVENT_SCHEMA, EVENT_NAME, DEFINER, TIME_ZONE, EVENT_DEFINITION, EVENT_TYPE,
		COALESCE(CAST(EXECUTE_AT AS CHAR), ''), COALESCE(INTERVAL_VALUE, ''), COALESCE(INTERVAL_FIELD, ''),
		COALESCE(CAST(STARTS AS CHAR), ''), COALESCE(CAST(ENDS AS CHAR), ''), SQL_MODE, STATUS, ON_COMPLETION, EVENT_COMMENT,
		COLLATION_CONNECTION
		FROM information_schema.EVENTS WHERE EVENT_SCHEMA = DATABASE() ORDER BY EVENT_NAME`)
	if err != nil {
		return nil, s, err
	}
	defer rows.Close()
	for rows.Next() {
		var e Event
		if err := rows.Scan(&e.Schema, &e.Name, &e.Definer, &e.Zone, &e.Body, &e.Type, &e.At, &e.Value, &e.Field,
			&e.Starts, &e.Ends, &e.SQLMode, &e.Status, &e.Completion, &e.Comment, &e.Collation); err != nil {
			return nil, s, err
		}
		events = append(events, e)
	}
	return events, s, rows.Err()
}

// Options has what the events do not say.
type Options struct {
	Source  string
	Zone    string // of the server, for an event whose zone is SYSTEM
	Targets intake.Targets
	Now     time.Time // past events are not imported; clock changes are examined for a year from here
}

// Convert makes jobs from the events.
func Convert(events []Event, s Server, o Options) *intake.Result {
	r := &intake.Result{Source: o.Source, Zone: o.Zone}
	for i := range events {
		r.Databases = append(r.Databases, events[i].Schema)
		r.Items = append(r.Items, item(&events[i], s, o))
	}
	if r.Imported() > 0 {
		r.Head = []string{
			"All jobs are disabled. To move one: ALTER EVENT NAME DISABLE, delete disabled: true here, and apply.",
			"Zone: that of an event whose zone is SYSTEM is that of the server, taken as " + o.Zone + " (--zone).",
			"Overlap: the event scheduler starts an event also while its last run goes on. Here one run waits for the one before, and later " +
				"times are a recorded gap. As there: overlap: allow, with max_running.",
			"Missed: the event scheduler forgets the times at which its server was down. Here the latest one runs afterwards. As there: missed: skip.",
			"An error of an event is in the log of the server only; here it is a failed run.",
		}
		if list := collations(r, events, s); list != "" {
			r.Head = append(r.Head, "Collation: events ran with collation_connection "+list+"; here it is "+s.Collation+", and texts that come from no column "+
				"are equal only if their case is, as in DAYNAME(NOW()) = 'sunday'. As there: sql as a list, which begins with "+
				"SET collation_connection = 'utf8mb4_general_ci', or what it was.")
		}
	}
	return r
}

// collations lists those that are not the collation of a job, with the events that have texts of their own. For others,
// the collations of columns decide.
func collations(r *intake.Result, events []Event, s Server) string {
	names := map[string][]string{}
	for i, e := range events {
		if r.Items[i].Definition != nil && e.Collation != s.Collation && strings.ContainsAny(e.Body, `'"`) {
			names[e.Collation] = append(names[e.Collation], e.Name)
		}
	}
	var list []string
	for _, collation := range slices.Sorted(maps.Keys(names)) {
		list = append(list, collation+" ("+strings.Join(names[collation], ", ")+")")
	}
	return strings.Join(list, ", ")
}

// wall is the layout of times.
const wall = "2006-01-02 15:04:05"

// uncommented returns a body without the comments before its first word. A server executes what is in /*! and /*M!.
func uncommented(body string) string {
	for {
		body = strings.TrimSpace(body)
		start, end := 2, "\n"
		switch {
		case strings.HasPrefix(body, "/*") && !strings.HasPrefix(body, "/*!") && !strings.HasPrefix(body, "/*M!"):
			end = "*/"
		case strings.HasPrefix(body, "#"):
			start = 1
		case len(body) > 2 && body[:2] == "--" && body[2] <= ' ':
		default:
			return body
		}
		_, rest, found := strings.Cut(body[start:], end)
		if !found {
			return body
		}
		body = rest
	}
}

// compound matches bodies that only the client or a stored program can read, and that are no single statement.
var compound = lazyregexp.New(`(?is)^\s*(\w+\s*:\s*)?(BEGIN|IF|CASE|WHILE|LOOP|REPEAT|FOR|DECLARE)\b`)

var begin = lazyregexp.New(`(?is)^\s*BEGIN\b(\s+NOT\s+ATOMIC\b)?`)

func item(e *Event, s Server, o Options) intake.Item {
	it := intake.Item{Place: "event " + e.Name}
	note := func(format string, args ...any) { it.Notes = append(it.Notes, fmt.Sprintf(format, args...)) }
	if it.Source = fmt.Sprintf("EVERY %s %s STARTS %s", e.Value, e.Field, e.Starts); e.Type == "ONE TIME" {
		it.Source = "AT " + e.At
	} else if e.Ends != "" {
		it.Source += " ENDS " + e.Ends
	}
	it.Source += ": " + e.Body
	j := &store.Job{Name: intake.Kept(e.Name), Description: strings.ToValidUTF8(e.Comment, "")}
	if reason := when(j, e, o, note); reason != "" {
		it.Reason = reason
		return it
	}
	body := strings.TrimSpace(e.Body)
	if work := uncommented(body); compound.MatchString(work) {
		if !s.MariaDB || !begin.MatchString(work) {
			it.Reason = fmt.Sprintf("MySQL runs such a body in a stored program only: CREATE PROCEDURE %s() with it, and write the job by hand, with sql: CALL %[1]s().", e.Name)
			if s.MariaDB {
				it.Reason = strings.Replace(it.Reason, "MySQL runs such a body in a stored program only", "Such a body is best a stored program", 1)
			}
			return it
		}
		body = strings.TrimSuffix(body, work) + begin.ReplaceAllString(work, "BEGIN NOT ATOMIC")
		note("BEGIN is BEGIN NOT ATOMIC outside of a stored program.")
	}
	if e.Completion != "PRESERVE" && (e.Type == "ONE TIME" || e.Ends != "") {
		j.RemoveDone = true
		note("ON COMPLETION NOT PRESERVE is remove_when_done.")
	}
	if e.Status != "ENABLED" {
		note("Its status is %s there, too.", e.Status)
	}
	if e.SQLMode != s.SQLMode {
		note("It ran with sql_mode %s; here it is that of the server, %s.", e.SQLMode, s.SQLMode)
	}
	if !s.same(e.Zone) {
		note("It ran with time_zone '%s'; here it is that of the server, '%s', and NOW() and CURDATE() tell its time. As there: sql as a list, "+
			"which begins with SET time_zone = '%[1]s'.", e.Zone, s.TimeZone)
	}
	it.Notes = append(it.Notes, o.Targets.Note(e.Schema, e.Definer))
	j.Steps = []store.Step{intake.Statement("step 1", body, o.Targets.Of(e.Schema))}
	it.Definition = j
	return it
}

// when gives the job its rule and bounds, or returns why it cannot have them.
func when(j *store.Job, e *Event, o Options, note func(string, ...any)) (reason string) {
	zone, shift, err := zoneOf(e.Zone, o.Zone)
	if err != nil {
		return "The event is left out, for " + err.Error() + "."
	}
	if shift != 0 {
		note("Its zone is %s; the times are written in UTC.", e.Zone)
	}
	own := &store.Schedule{Zone: zone}
	j.Own = own
	local := func(text string) (time.Time, error) {
		t, err := time.Parse(wall, strings.SplitN(text, ".", 2)[0])
		return t.Add(-shift), err
	}
	if e.Type == "ONE TIME" {
		at, err := local(e.At)
		if err != nil {
			return fmt.Sprintf("Its time is %.40q, which is no time.", e.At)
		}
		own.Rule = "at " + at.Format("2006-01-02T15:04:05")
		switch left, err := after(own, o.Now); {
		case err != nil:
			return fmt.Sprintf("Its time cannot be used: %v; write the job by hand.", err)
		case left.IsZero():
			return "Its time is past; it has no further time."
		}
		return ""
	}
	starts, err := local(e.Starts)
	if err != nil {
		return fmt.Sprintf("Its start is %.40q, which is no time.", e.Starts)
	}
	if reason := every(own, e, starts, shift != 0, o, note); reason != "" {
		return reason
	}
	if e.Ends != "" {
		ends, err := local(e.Ends)
		if err != nil {
			return fmt.Sprintf("Its end is %.40q, which is no time.", e.Ends)
		}
		if j.NotAfter, err = after(&store.Schedule{Rule: "at " + ends.Format("2006-01-02T15:04:05"), Zone: zone}, time.Time{}); err != nil {
			return fmt.Sprintf("Its end cannot be used: %v.", err)
		}
	}
	next, err := after(own, o.Now)
	if err != nil {
		return fmt.Sprintf("Its rule %q cannot be used: %v; write the job by hand.", own.Rule, err)
	}
	if next.IsZero() || !j.NotAfter.IsZero() && next.After(j.NotAfter) {
		return "Its last time is past; it has no further time."
	}
	return ""
}

// after returns the next time of a rule.
func after(s *store.Schedule, t time.Time) (time.Time, error) {
	r, err := rules.Parse(s.Rule, rules.Defaults{Zone: s.Zone})
	if err != nil {
		return t, err
	}
	return r.Next(t)
}

var offsetZone = lazyregexp.New(`^([+-])(\d{1,2}):(\d{2})$`)

// zoneOf returns the name of an event's zone. An offset of whole hours has a name, too. The times of any other
// offset have to be shifted to UTC.
func zoneOf(written, system string) (zone string, shift time.Duration, err error) {
	if written == "SYSTEM" {
		return system, 0, nil
	}
	if m := offsetZone.FindStringSubmatch(written); m != nil {
		hours, _ := strconv.Atoi(m[2]) // the pattern allows only digits
		minutes, _ := strconv.Atoi(m[3])
		if hours == 0 && minutes == 0 {
			return "UTC", 0, nil
		}
		if minutes == 0 {
			// The signs of these names have the opposite meaning.
			return fmt.Sprintf("Etc/GMT%s%d", map[string]string{"+": "-", "-": "+"}[m[1]], hours), 0, nil
		}
		if shift = time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute; m[1] == "-" {
			shift = -shift
		}
		return "UTC", shift, nil
	}
	if _, err := rules.Parse("every 1h", rules.Defaults{Zone: written}); err != nil {
		return "", 0, fmt.Errorf("its zone cannot be used: %w; write the job by hand", err)
	}
	if written == "Etc/UTC" {
		written = "UTC"
	}
	return written, 0, nil
}
