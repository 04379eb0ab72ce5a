package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/dbjobs/dbjobs/store/engine"
)

// ErrBusy says that runs are being executed.
var ErrBusy = errors.New("runs are being executed")

// Contents counts what is lost with the tables.
type Contents struct {
	Jobs      int `json:"jobs"`
	Schedules int `json:"schedules"` // that jobs share
	Runs      int `json:"runs"`
	Running   int `json:"running"`
}

// Contents counts what the tables have. What a part of them is missing of, as after an Uninstall that was
// cut short, counts as nothing.
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

// Uninstall drops the tables, views and routines of dbjobs, with all that they have, and reports whether the schema in which
// they were stays for what others have put there. Where runs are executed, that is ErrBusy, unless it is
// forced.
//
// Crash window: on MySQL and MariaDB, a part of the tables may be gone. The version is in the last one, so
// that Uninstall goes on from there. Elsewhere either all of them are gone or none.
func (s *Store) Uninstall(ctx context.Context, force bool) (schemaStays bool, err error) {
	err = s.db.InTx(ctx, func(tx *engine.Tx) error {
		if err := s.db.LockSchema(ctx, tx); err != nil {
			return err
		}
		if !force {
			// Where DDL ends a transaction, outside of it: a lock on the tables would hold up their drop.
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
