package pgcron

import (
	"context"
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ErrAbsent says that the database has no pg_cron.
var ErrAbsent = errors.New("this database has no table cron.job; pg_cron is in one database of its server only, usually postgres (SHOW cron.database_name)")

// Seen is what a database shows of pg_cron to a login. A login sees only its own jobs, unless it is a superuser or
// has BYPASSRLS.
type Seen struct {
	Rows   []Row
	Zone   string // of their times; empty: no other than the default
	Alone  bool   // the rows are those of the login only
	NoZone bool   // the login may not see the zone, if there is one
}

// Query reads what the login of the database sees.
func Query(ctx context.Context, db *sql.DB) (*Seen, error) { return query(ctx, db, "cron.timezone") }

// query takes the zone from the given setting. Since pg_cron 1.5 its own is for superusers and pg_read_all_settings
// only: SHOW and its function are refused for others, and pg_settings leaves it out.
func query(ctx context.Context, db *sql.DB, setting string) (*Seen, error) {
	var there bool
	var seen Seen
	err := db.QueryRowContext(ctx, `SELECT to_regclass('cron.job') IS NOT NULL, coalesce(s.setting, ''),
		s.setting IS NULL AND NOT rolsuper AND NOT pg_has_role('pg_read_all_settings', 'USAGE'), NOT (rolsuper OR rolbypassrls)
		FROM pg_roles LEFT JOIN pg_settings s ON s.name = $1 WHERE rolname = current_user`, setting).
		Scan(&there, &seen.Zone, &seen.NoZone, &seen.Alone)
	if err != nil {
		return nil, err
	}
	if !there {
		return nil, ErrAbsent
	}
	list, err := db.QueryContext(ctx, `SELECT to_jsonb(j)::text FROM cron.job j ORDER BY jobid`)
	if err != nil {
		return nil, err
	}
	defer list.Close()
	for list.Next() {
		var text string
		if err := list.Scan(&text); err != nil {
			return nil, err
		}
		var row Row
		if err := json.Unmarshal([]byte(text), &row); err != nil {
			return nil, fmt.Errorf("a row of cron.job: %w", err)
		}
		seen.Rows = append(seen.Rows, row)
	}
	return &seen, list.Err()
}

// File reads rows from a file. The file is CSV with a heading, as psql --csv -c 'SELECT * FROM cron.job' writes
// it, or the COPY of pg_dump.
func File(text string) ([]Row, error) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "COPY cron.job (") {
			return dump(text)
		}
	}
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	all, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("it is no CSV of cron.job: %w", err)
	}
	if len(all) == 0 {
		return nil, errors.New("it is empty; want CSV with a heading, as psql --csv -c 'SELECT * FROM cron.job' writes it")
	}
	return table(all[0], all[1:])
}

// dump reads the COPY of a dump.
func dump(text string) ([]Row, error) {
	var heading []string
	var cells [][]string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case heading == nil:
			if list, found := strings.CutPrefix(line, "COPY cron.job ("); found {
				list, _, _ = strings.Cut(list, ")")
				for name := range strings.SplitSeq(list, ",") {
					heading = append(heading, strings.Trim(name, ` "`))
				}
			}
		case line == `\.`:
			return table(heading, cells)
		default:
			row := strings.Split(line, "\t")
			for i := range row {
				row[i] = unescape(row[i])
			}
			cells = append(cells, row)
		}
	}
	return nil, errors.New("the COPY of cron.job has no end, \\.; the file is cut short")
}

// unescape reads a value in the form that COPY writes. NULL becomes an empty text.
func unescape(cell string) string {
	if cell == `\N` {
		return ""
	}
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r", `\t`, "\t", `\b`, "\b", `\f`, "\f", `\v`, "\v").Replace(cell)
}

// table makes rows from cells below a heading.
func table(heading []string, cells [][]string) (rows []Row, err error) {
	at := func(name string) int { return slices.Index(heading, name) }
	for _, need := range []string{"schedule", "command"} {
		if at(need) < 0 {
			return nil, fmt.Errorf("it has no column %s; want CSV with a heading, as psql --csv -c 'SELECT * FROM cron.job' writes it", need)
		}
	}
	for n, c := range cells {
		if len(c) != len(heading) {
			return nil, fmt.Errorf("row %d has %d values, and the heading %d", n+1, len(c), len(heading))
		}
		value := func(name string) string {
			if i := at(name); i >= 0 {
				return c[i]
			}
			return ""
		}
		row := Row{ID: int64(n + 1), Schedule: value("schedule"), Command: value("command"), Node: value("nodename"),
			Database: value("database"), User: value("username")}
		if id, err := strconv.ParseInt(value("jobid"), 10, 64); err == nil {
			row.ID = id
		}
		if name := value("jobname"); name != "" {
			row.Name = &name
		}
		if active := value("active"); active != "" {
			on := active == "t" || active == "true"
			row.Active = &on
		}
		rows = append(rows, row)
	}
	return rows, nil
}
