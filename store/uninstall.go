package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dbjobs/dbjobs/store/engine"
)

// ErrBusy says that runs are being executed.
var ErrBusy = errors.New("runs are being executed")

// Contents counts the content that is lost with the tables.
type Contents struct {
	Jobs      int `json:"jobs"`
	Schedules int `json:"schedules"` // schedules that jobs share
	Runs      int `json:"runs"`
	Running   int `json:"running"`

	Missing []string `json:"-"` // tables that are not there, and count as empty
	None    bool     `json:"-"` // no table is there
}

// Contents counts the content of the tables. Some may be missing, as after an Uninstall that was stopped: the others count.
func (s *Store) Contents(ctx context.Context) (Contents, error) {
	missing, err := s.db.Missing(ctx)
	if err != nil {
		return Contents{}, err
	}
	c, err := s.contents(ctx, s.db, missing.Tables)
	c.None = missing.None
	return c, err
}

// contents asks no table that is missing: the error would end a transaction.
func (s *Store) contents(ctx context.Context, q engine.Runner, missing []string) (Contents, error) {
	c := Contents{Missing: missing}
	for table, counts := range map[string][]any{"jobs": {&c.Jobs}, "schedules": {&c.Schedules}, "runs": {&c.Runs, &c.Running}} {
		if slices.Contains(missing, s.Engine().Table(table)) {
			continue
		}
		if err := q.Row(ctx, "contents_"+table, engine.Args{}, counts...); err != nil {
			return c, err
		}
	}
	return c, nil
}

// Uninstall drops the tables, views and routines of dbjobs, with all their content. It reports whether the schema
// that had them stays, because it has objects of others. If runs are being executed, it returns ErrBusy, unless force
// is set. It refuses a schema that is newer than this program: tables that it does not know would stay, and a later migration
// would take over the rows in them.
//
// Crash window: on MySQL and MariaDB, some of the tables may be gone. The last table has the version, so Uninstall
// can continue from there. On the other engines, either all tables are gone or none.
func (s *Store) Uninstall(ctx context.Context, force bool) (schemaStays bool, err error) {
	now, _, err := s.schema(ctx)
	if err == nil {
		err = now.CheckKnown("uninstall")
	}
	if err != nil {
		return false, err
	}
	missing, err := s.db.Missing(ctx)
	if err != nil {
		return false, err
	}
	err = s.db.InTx(ctx, func(tx *engine.Tx) error {
		if err := s.db.LockSchema(ctx, tx); err != nil {
			return err
		}
		if !force {
			// If DDL ends a transaction, this reads outside of it: a lock on the tables would delay their drop.
			c, err := s.contents(ctx, s.db.ForDDL(tx), missing.Tables)
			if err != nil {
				return err
			}
			if c.Running > 0 {
				return fmt.Errorf("%w: %d", ErrBusy, c.Running)
			}
		}
		return s.db.DropAll(ctx, tx)
	})
	if err != nil {
		return false, err
	}
	return s.db.DropSchema(ctx)
}
