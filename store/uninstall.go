package store

import (
	"context"
	"errors"
	"fmt"

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
}

// Contents counts the content of the tables. A table that is missing, as after an Uninstall that was stopped, counts
// as empty.
func (s *Store) Contents(ctx context.Context) (c Contents, err error) {
	return s.contents(ctx, s.db)
}

func (s *Store) contents(ctx context.Context, q engine.Runner) (c Contents, err error) {
	err = q.Row(ctx, "contents", engine.Args{}, &c.Jobs, &c.Schedules, &c.Runs, &c.Running)
	if errors.Is(err, ErrSchema) {
		return Contents{}, nil
	}
	return c, err
}

// Uninstall drops the tables, views and routines of dbjobs, with all their content. It reports whether the schema
// that had them stays, because it has objects of others. If runs are being executed, it returns ErrBusy, unless force
// is set.
//
// Crash window: on MySQL and MariaDB, some of the tables may be gone. The last table has the version, so Uninstall
// can continue from there. On the other engines, either all tables are gone or none.
func (s *Store) Uninstall(ctx context.Context, force bool) (schemaStays bool, err error) {
	err = s.db.InTx(ctx, func(tx *engine.Tx) error {
		if err := s.db.LockSchema(ctx, tx); err != nil {
			return err
		}
		if !force {
			// If DDL ends a transaction, this reads outside of it: a lock on the tables would delay their drop.
			c, err := s.contents(ctx, s.db.ForDDL(tx))
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
