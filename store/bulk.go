package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dbjobs/dbjobs/store/engine"
)

// documentSize bounds a statement's document, in bytes: MariaDB refuses packets above 16 MB by default, and quoting can
// double a document.
const documentSize = 4 << 20

// queryRuns runs a statement about runs, in parts if they are many: for a list of tens of thousands of ids, MySQL and MariaDB read
// the whole table (range_optimizer_max_mem_size, optimizer_max_sel_arg_weight). The parts are in the order of locks.
func queryRuns(ctx context.Context, tx *engine.Tx, statement string, ids []string, scan func(*sql.Rows) error) error {
	for part := range slices.Chunk(slices.Sorted(slices.Values(ids)), page) {
		if err := tx.Query(ctx, statement, engine.Args{"ids": part}, scan); err != nil {
			return err
		}
	}
	return nil
}

// execRuns is queryRuns for a statement that answers only how many rows it found, and that has other arguments besides the ids.
func execRuns(ctx context.Context, tx *engine.Tx, statement string, a engine.Args, ids []string) (found int64, err error) {
	for part := range slices.Chunk(slices.Sorted(slices.Values(ids)), page) {
		n, err := tx.Exec(ctx, statement, a.With("ids", part))
		if found += n; err != nil {
			return found, err
		}
	}
	return found, nil
}

// bulk writes rows by one statement, or by several if they are too many for one. check gets the total number of rows
// that the statements found.
func bulk[T any](ctx context.Context, w *writer, statement string, rows []T, check func(int64) error) error {
	return bulkWith(ctx, w.tx, statement, engine.Args{"now": w.now}, rows, check)
}

// bulkWith is bulk for a statement that has other arguments besides the rows.
func bulkWith[T any](ctx context.Context, tx *engine.Tx, statement string, a engine.Args, rows []T, check func(int64) error) error {
	var found int64
	var text strings.Builder
	send := func() error {
		if text.Len() == 0 {
			return nil
		}
		text.WriteByte(']')
		n, err := tx.Exec(ctx, statement, a.With("rows", text.String()))
		found += n
		text.Reset()
		return err
	}
	for i := range rows {
		row, err := encoded(&rows[i])
		if err != nil {
			return fmt.Errorf("encode rows: %w", err)
		}
		if text.Len()+len(row) > documentSize {
			if err := send(); err != nil {
				return err
			}
		}
		if text.Len() == 0 {
			const longer = 8 // the other rows may be longer than this one by this many bytes
			text.Grow(min(documentSize, (len(rows)-i)*(len(row)+longer)))
			text.WriteByte('[')
		} else {
			text.WriteByte(',')
		}
		text.Write(row)
	}
	if err := send(); err != nil || check == nil || len(rows) == 0 {
		return err
	}
	return check(found)
}

// execAll executes statements that have the same arguments, in order.
func execAll(ctx context.Context, q engine.Runner, a engine.Args, statements ...string) error {
	for _, statement := range statements {
		if _, err := q.Exec(ctx, statement, a); err != nil {
			return err
		}
	}
	return nil
}

// encoded returns a row as JSON. A row that is JSON already is not encoded again.
func encoded[T any](r *T) ([]byte, error) {
	if raw, ok := any(r).(*row); ok {
		return *raw, nil
	}
	return json.Marshal(r)
}
