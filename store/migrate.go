package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
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

// Schema is the version of the schema, and the name, that are recorded in a database.
type Schema struct {
	Version    int       `json:"version"`                  // 0: there are no tables
	Oldest     int       `json:"oldest"`                   // the oldest schema number for which a program may be built
	Latest     int       `json:"latest"`                   // the schema number to which this program would migrate
	Outdated   bool      `json:"views_outdated,omitempty"` // the views and routines, or how rows belong to logins, are not those of this program
	Instance   string    `json:"instance,omitempty"`
	Owners     bool      `json:"owners,omitempty"` // jobs belong to logins, and each ordinary login reaches its own only
	MigratedAt time.Time `json:"migrated_at,omitzero"`
	hidden     bool      // as Probe has found: row security hides rows from this login, and no installation with owners has asked for that
	keyless    bool      // as Probe has found: the tables lack keys, without which a run may be made twice
}

// read reads it, and returns the digest of the views and routines that are there.
func (c *Schema) read(ctx context.Context, q engine.Runner) (digest string, err error) {
	err = q.Row(ctx, "installation", engine.Args{}, &c.Version, &c.Oldest, engine.Nullable(&digest), engine.Nullable(&c.Instance), &c.Owners, engine.At(&c.MigratedAt))
	return digest, err
}

// compare finds out whether the views and routines, by their digest, are this program's, whose digest it returns. Those of a
// newer schema are not its business.
func (c *Schema) compare(e *engine.Engine, digest string) (ours string, err error) {
	ours, err = Statements(e).Digest(c.Owners)
	c.Outdated = c.Version <= Latest && digest != ours
	return ours, err
}

// Check returns nil or an error that wraps ErrSchema and says what to do.
func (c Schema) Check() error {
	switch {
	case c.hidden:
		return fmt.Errorf("%w: row security may hide rows of its tables from this login, and a pass would take jobs that it does not see for removed ones; `dbjobs doctor` names the tables, and what to do", ErrSchema)
	case c.Version == 0:
		return fmt.Errorf("%w: the tables of dbjobs are not there; run `dbjobs migrate`", ErrSchema)
	case c.Version < required:
		return fmt.Errorf("%w: it has version %d, this program needs %d; run `dbjobs migrate`", ErrSchema, c.Version, required)
	case c.Oldest > Latest:
		return fmt.Errorf("%w: it has version %d and needs a program for version %d or newer, but this one is for %d; use a newer dbjobs",
			ErrSchema, c.Version, c.Oldest, Latest)
	case c.keyless && c.Version <= Latest: // a newer schema may have others
		return fmt.Errorf("%w: its tables lack keys, without which a run may be made twice; if a restore is under way, wait for its end; else `dbjobs migrate` names what is missing", ErrSchema)
	}
	return nil
}

// CheckKnown returns nil, or an error that wraps ErrSchema where there may be tables of which this program does not know. doing
// is what has to be done with all tables.
func (c Schema) CheckKnown(doing string) error {
	if c.Version <= Latest {
		return nil
	}
	return fmt.Errorf("%w: it has version %d, and this program knows the tables of version %d only; %s with a newer dbjobs", ErrSchema, c.Version, Latest, doing)
}

// Schema reads the version of the schema. Without tables, it is Version 0 and no error.
func (s *Store) Schema(ctx context.Context) (Schema, error) {
	c, digest, err := s.schema(ctx)
	if err == nil && c.Version > 0 {
		_, err = c.compare(s.db.Engine(), digest)
	}
	return c, err
}

func (s *Store) schema(ctx context.Context) (c Schema, digest string, err error) {
	c.Latest = Latest
	digest, err = c.read(ctx, s.db)
	if errors.Is(err, ErrNotFound) { // there is the table, and no row
		hidden, err := s.Hidden(ctx, c)
		c.hidden = len(hidden) > 0
		return c, "", err
	}
	if errors.Is(err, ErrSchema) {
		return c, "", nil
	}
	return c, digest, err
}

// Hidden returns the tables of which row security may hide rows from this login. In an installation with owners it does so
// on purpose, and there are none.
func (s *Store) Hidden(ctx context.Context, c Schema) (tables []string, err error) {
	if c.Owners || !s.db.Has("hidden_tables") {
		return nil, nil
	}
	var name string
	err = s.db.Query(ctx, "hidden_tables", nil, engine.Reads(&name).Each(func(string) { tables = append(tables, name) }))
	return tables, err
}

// CheckSchema is Schema and Check. It does not look at views and routines: commands need none of these, and to read the
// texts of this program's takes longer than many a command.
func (s *Store) CheckSchema(ctx context.Context) error {
	c, _, err := s.schema(ctx)
	if err != nil {
		return err
	}
	return c.Check()
}

// SetInstance names the database. A tick that expects another name does nothing, so a copy of a database
// runs no jobs. An empty name removes the name.
func (s *Store) SetInstance(ctx context.Context, name string) error {
	if err := firstError("database", check{"instance", shortLine(name, maxName)}); err != nil {
		return err
	}
	_, err := s.db.Exec(ctx, "set_instance", engine.Args{"instance": engine.Null(name)})
	return err
}

// SetOwners lets rows belong to logins, or to nobody again. It refuses a schema that is newer than this program: there may be
// tables and views of which it does not know how to hide the rows.
//
// Crash window: where DDL ends a transaction, rows may have owners while the views are those without a barrier. The schema is
// outdated then, and Migrate brings them in.
func (s *Store) SetOwners(ctx context.Context, on bool) error {
	return s.db.InTx(ctx, func(tx *engine.Tx) error {
		if err := s.db.LockSchema(ctx, tx); err != nil {
			return err
		}
		var now Schema
		if _, err := now.read(ctx, tx); err != nil {
			return err
		}
		if err := now.CheckKnown("set owners"); err != nil {
			return err
		}
		if err := s.db.Own(ctx, tx, on); err != nil {
			return err
		}
		_, _, err := s.replace(ctx, tx, false)
		return err
	})
}

// HasLogins returns ErrNoLogins if the engine of the URL knows no logins.
func HasLogins(rawURL string) error {
	e, err := engine.Of(rawURL)
	if err == nil && !e.KnowsLogins {
		err = ErrNoLogins
	}
	return err
}

// Grants returns the statements that give a login the least rights of its kind: see engine.Engine.
func Grants(kind, rawURL, login string, owners bool) (string, error) {
	e, err := engine.Of(rawURL)
	if err != nil {
		return "", err
	}
	return Statements(e).Grants(kind, rawURL, login, owners)
}

// MigrationText returns the whole schema as SQL, for companies where only a DBA may run DDL. It ends with
// the statement that records the version, and with owners, with those by which rows belong to logins.
func MigrationText(rawURL string, owners bool) (string, error) {
	e, err := engine.Of(rawURL)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	all, err := e.Migrations()
	if err != nil {
		return "", err
	}
	for _, m := range all {
		fmt.Fprintf(&b, "-- %s\n\n%s;\n\n", m.Name, strings.Join(m.Statements, ";\n\n"))
	}
	statements := Statements(e)
	repeatables, err := statements.Repeatables(owners)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "-- views and routines\n\n%s", e.RepeatableText(repeatables))
	digest, err := statements.Digest(owners)
	if err != nil {
		return "", err
	}
	known := map[string]string{"now": "NULL", "version": strconv.Itoa(Latest), "oldest": strconv.Itoa(oldestProgram),
		"repeatable": "'" + digest + "'"}
	for _, name := range []string{"first_installation", "record_migration", "record_repeatable"} {
		text, err := statements.Literal(name, known)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s\n;\n", text)
	}
	if !owners {
		return b.String(), nil
	}
	list, err := e.Ownership(true)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "\n%s;\n", strings.Join(list, ";\n\n"))
	return b.String(), nil
}

// Migrate brings the schema to Latest, and replaces the views and routines if they are not those of this program or of this server,
// if one is missing, such as after a dump without routines was restored, or if nobody can read a view. It returns the names of the
// migrations that it applied, and "views and routines" if it replaced these. Without news, it takes no lock.
//
// A table that is missing from a schema of this version is an error: somebody has dropped it, or an Uninstall was stopped.
// So is a key, or a unique index: a restore has stopped before its end.
//
// Two migrators take turns. Every statement can be run twice: on MySQL, DDL ends a transaction, so a crash may leave a
// migration half done.
func (s *Store) Migrate(ctx context.Context) ([]string, error) {
	migrations, err := s.db.Engine().Migrations()
	if err != nil {
		return nil, err
	}
	was, err := s.Schema(ctx)
	if err != nil {
		return nil, err
	}
	missing, err := s.db.Missing(ctx)
	if err != nil {
		return nil, err
	}
	if err := was.checkWhole(missing); err != nil {
		return nil, err
	}
	incomplete := false
	if was.Version == Latest {
		unusable, err := s.db.Unusable(ctx)
		if err != nil {
			return nil, err
		}
		incomplete = len(missing.Repeatables)+len(missing.OldViews)+len(unusable) > 0
	}
	if was.Version >= Latest && !was.Outdated && !incomplete {
		return nil, was.Check()
	}
	var applied []string
	err = s.db.InTx(ctx, func(tx *engine.Tx) (err error) {
		applied, err = s.migrate(ctx, tx, migrations, incomplete)
		return err
	})
	return applied, err
}

// checkWhole returns an error if tables or keys are missing that no migration makes, or if a table may be.
func (c Schema) checkWhole(m engine.Missing) error {
	if c.Version == Latest && len(m.NotShown) > 0 {
		return fmt.Errorf("%w: it has version %d, but this login does not see all of its tables: it has no right on them, or they are missing: %s; migrate with the login that made the tables",
			ErrSchema, c.Version, strings.Join(m.NotShown, ", "))
	}
	if c.Version == Latest && len(m.Tables) > 0 {
		return fmt.Errorf("%w: it has version %d, but tables are missing, which no migration makes again: %s; restore them from a copy of the database, or let `dbjobs uninstall` drop the rest",
			ErrSchema, c.Version, strings.Join(m.Tables, ", "))
	}
	keys := m.Keys
	for _, x := range m.Indexes {
		if x.Unique && c.Version == Latest { // a migration may add one to a table
			keys = append(keys, x.Name)
		}
	}
	if len(keys) > 0 && c.Version <= Latest { // a newer schema may have others
		return fmt.Errorf("%w: keys are missing, without which rows may be made twice: %s; where a restore stopped before its end, let `dbjobs uninstall` drop what is there, and restore again; "+
			"`dbjobs doctor` says how to make an index that was dropped", ErrSchema, strings.Join(keys, ", "))
	}
	return nil
}

func (s *Store) migrate(ctx context.Context, tx *engine.Tx, migrations []engine.Migration, incomplete bool) (applied []string, err error) {
	if err := s.db.LockSchema(ctx, tx); err != nil {
		return nil, err
	}
	if err := s.db.Migrate(ctx, tx, migrations[0]); err != nil {
		return nil, err
	}
	if _, err := s.db.ForDDL(tx).Exec(ctx, "first_installation", engine.Args{"now": s.now()}); err != nil {
		return nil, err
	}
	var version int
	if err := tx.Row(ctx, "lock_installation", engine.Args{}, &version); err != nil {
		return nil, err
	}
	for _, m := range migrations[1:] {
		if m.Number <= version {
			continue
		}
		if err := s.db.Migrate(ctx, tx, m); err != nil {
			return nil, err
		}
		applied = append(applied, m.Name)
	}
	if len(applied) > 0 {
		if _, err := tx.Exec(ctx, "record_migration", engine.Args{"now": s.now(), "version": Latest, "oldest": oldestProgram}); err != nil {
			return nil, err
		}
	}
	now, replaced, err := s.replace(ctx, tx, incomplete)
	if replaced {
		applied = append(applied, "views and routines")
	}
	if err == nil && now.Owners && len(applied) > 0 { // a new table needs its policies, and a new view the rights of who asks
		err = s.db.Own(ctx, tx, true)
	}
	return applied, err
}

// replace brings in views and routines if they are not those of this program, or not complete. It returns the schema as it was
// before that: nobody else changes it until the end of the transaction.
func (s *Store) replace(ctx context.Context, tx *engine.Tx, incomplete bool) (now Schema, done bool, err error) {
	digest, err := now.read(ctx, tx)
	if err != nil {
		return now, false, err
	}
	ours, err := now.compare(s.db.Engine(), digest)
	if err != nil || !now.Outdated && !incomplete {
		return now, false, err
	}
	repeatables, err := Statements(s.db.Engine()).Repeatables(now.Owners)
	if err != nil {
		return now, false, err
	}
	if err := s.db.Replace(ctx, tx, repeatables); err != nil {
		return now, false, err
	}
	_, err = tx.Exec(ctx, "record_repeatable", engine.Args{"repeatable": ours})
	return now, err == nil, err
}
