package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Latest is the schema number that this program is built for, and oldestProgram the number that a program must be
// built for at least to use that schema. A migration that only adds leaves oldestProgram alone; what it made
// superfluous is taken away a release later, and then oldestProgram grows.
const (
	Latest        = 1
	oldestProgram = 1
	// required is the oldest schema that this program can use.
	required = 1
)

// Schema is what a database says of itself.
type Schema struct {
	Version    int       `json:"version"` // 0: the tables are not there
	Oldest     int       `json:"oldest"`  // the oldest schema number that a program may be built for
	Latest     int       `json:"latest"`  // what this program would migrate to
	Instance   string    `json:"instance,omitempty"`
	MigratedAt time.Time `json:"migrated_at,omitzero"`
}

// Check returns nil or an error that wraps ErrSchema and says what to do.
func (c Schema) Check() error {
	switch {
	case c.Version == 0:
		return fmt.Errorf("%w: the tables of dbjobs are not there; run `dbjobs migrate`", ErrSchema)
	case c.Version < required:
		return fmt.Errorf("%w: it has version %d, this program needs %d; run `dbjobs migrate`", ErrSchema, c.Version, required)
	case c.Oldest > Latest:
		return fmt.Errorf("%w: it has version %d and takes programs for version %d or newer, this one is for %d; use a newer dbjobs",
			ErrSchema, c.Version, c.Oldest, Latest)
	}
	return nil
}

// Schema reads what the database says of itself; no tables are Version 0 and no error.
func (s *Store) Schema(ctx context.Context) (Schema, error) {
	c := Schema{Latest: Latest}
	err := s.row(ctx, s.db, "installation", args{}, &c.Version, &c.Oldest, nullable(&c.Instance), at{&c.MigratedAt})
	if errors.Is(err, ErrSchema) || errors.Is(err, ErrNotFound) {
		return c, nil
	}
	return c, err
}

// CheckSchema is Schema and Check.
func (s *Store) CheckSchema(ctx context.Context) error {
	c, err := s.Schema(ctx)
	if err != nil {
		return err
	}
	return c.Check()
}

// SetInstance names the database, so that a tick that is told another name claims nothing: a copy fires nothing. An
// empty name takes it off.
func (s *Store) SetInstance(ctx context.Context, name string) error {
	if err := firstError("database", check{"instance", shortLine(name, maxName)}); err != nil {
		return err
	}
	_, err := s.exec(ctx, s.db, "set_instance", args{"instance": null(name)})
	return err
}

type migration struct {
	number     int
	name       string
	statements []string
}

var statementEnd = regexp.MustCompile(`(?m);[ \t]*$`)

func (d *dialect) migrations() ([]migration, error) {
	names, err := fs.Glob(files, "sql/"+d.name+"/schema/*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	out := make([]migration, 0, len(names))
	for _, path := range names {
		b, err := files.ReadFile(path)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(path[strings.LastIndex(path, "/")+1:], ".sql")
		m := migration{name: name}
		if m.number, err = strconv.Atoi(name[:4]); err != nil {
			return nil, fmt.Errorf("%s: want a name that begins with four digits", path)
		}
		for _, st := range statementEnd.Split(string(b), -1) {
			if strings.TrimSpace(commentLine.ReplaceAllString(st, "")) != "" {
				m.statements = append(m.statements, strings.TrimSpace(st))
			}
		}
		out = append(out, m)
	}
	return out, nil
}

var commentLine = regexp.MustCompile(`(?m)^--.*$`)

// MigrationText is all of the schema as SQL, for shops where only the DBA may run DDL. It ends with the statement that
// records the version.
func MigrationText(rawURL string) (string, error) {
	d, err := dialectOf(rawURL)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	all, err := d.migrations()
	if err != nil {
		return "", err
	}
	for _, m := range all {
		fmt.Fprintf(&b, "-- %s\n\n%s;\n\n", m.name, strings.Join(m.statements, ";\n\n"))
	}
	for _, name := range []string{"first_installation", "record_migration"} {
		st, err := d.statement(name)
		if err != nil {
			return "", err
		}
		text := st.text
		for i, a := range st.args {
			value := map[string]string{"now": "NULL", "version": strconv.Itoa(Latest), "oldest": strconv.Itoa(oldestProgram)}[a]
			place := d.placeholder(i + 1)
			text = strings.Replace(text, place, value, strings.Count(text, place)*btoi(d.numbered)+btoi(!d.numbered))
		}
		fmt.Fprintf(&b, "%s;\n", text)
	}
	return b.String(), nil
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Migrate brings the schema to Latest and names the migrations that it applied. Two migrators take turns; every
// statement can be run twice, since DDL ends a transaction on MySQL and a migration may be cut half-way.
func (s *Store) Migrate(ctx context.Context) ([]string, error) {
	all, err := s.d.migrations()
	if err != nil {
		return nil, err
	}
	was, err := s.Schema(ctx)
	if err != nil {
		return nil, err
	}
	if was.Version >= Latest {
		return nil, was.Check()
	}
	var applied []string
	err = s.tx(ctx, func(tx *sql.Tx) error {
		applied = nil
		ddl := querier(tx)
		if s.d.ddlCommits {
			ddl = s.db // DDL would end the transaction that holds the lock
		}
		if s.d.lock != "" {
			if _, err := tx.ExecContext(ctx, s.d.lock); err != nil {
				return s.wrap("lock the schema", err)
			}
		}
		if err := s.apply(ctx, ddl, all[0]); err != nil {
			return err
		}
		if _, err := s.exec(ctx, ddl, "first_installation", args{"now": s.now()}); err != nil {
			return err
		}
		var version int
		if err := s.row(ctx, tx, "lock_installation", args{}, &version); err != nil {
			return err
		}
		for _, m := range all[1:] {
			if m.number <= version {
				continue
			}
			if err := s.apply(ctx, ddl, m); err != nil {
				return err
			}
			applied = append(applied, m.name)
		}
		if len(applied) == 0 {
			return nil
		}
		_, err := s.exec(ctx, tx, "record_migration", args{"now": s.now(), "version": Latest, "oldest": oldestProgram})
		return err
	})
	return applied, err
}

func (s *Store) apply(ctx context.Context, q querier, m migration) error {
	for _, st := range m.statements {
		if _, err := q.ExecContext(ctx, st); err != nil {
			first, _, _ := strings.Cut(strings.TrimSpace(commentLine.ReplaceAllString(st, "")), "\n")
			return s.wrap(fmt.Sprintf("migration %s: %s", m.name, first), err)
		}
	}
	return nil
}
