package engine

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// replaceOnPostgres replaces views and routines one by one. So the rights on them stay, and so do the objects of
// others that use them. A view that lost a column, or a routine that has other arguments or another result, cannot be
// replaced like that. In this case, replaceOnPostgres drops all of them and makes them again, with the rights that
// were granted on them. If an object of others uses one of them, that is an error, and everything stays as it was.
func replaceOnPostgres(ctx context.Context, db *DB, tx *Tx, all []Repeatable) error {
	names := make([]string, len(all))
	for i, r := range all {
		names[i] = r.Name[strings.LastIndex(r.Name, ".")+1:]
	}
	rights, err := textsOf(ctx, tx, "repeatable_rights", names)
	if err != nil {
		return err
	}
	drops, err := textsOf(ctx, tx, "repeatable_drops", names)
	if err != nil {
		return err
	}
	if len(drops) == 0 { // the first time
		return db.bringInAll(ctx, tx, all)
	}
	if err := runTexts(ctx, db, tx, "SAVEPOINT repeatables"); err != nil {
		return err
	}
	fits, err := fitInPlace(ctx, db, tx, all, names)
	if err != nil || fits {
		return err
	}
	if err := runTexts(ctx, db, tx, append([]string{"ROLLBACK TO SAVEPOINT repeatables"}, drops...)...); err != nil {
		return err
	}
	if err := db.bringInAll(ctx, tx, all); err != nil {
		return err
	}
	return runTexts(ctx, db, tx, rights...)
}

// bringInAll makes the views and routines when none of them exists.
func (db *DB) bringInAll(ctx context.Context, tx *Tx, all []Repeatable) error {
	for _, r := range all {
		if err := db.bringIn(ctx, tx, r, r.Statements); err != nil {
			return err
		}
	}
	return nil
}

// fitInPlace replaces the views and routines in place, and reports whether it could replace all of them.
func fitInPlace(ctx context.Context, db *DB, tx *Tx, all []Repeatable, names []string) (bool, error) {
	for _, r := range all {
		if err := db.bringIn(ctx, tx, r, r.replacing(true)); isOtherShape(err) {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	there := 0
	err := tx.Row(ctx, "repeatables_there", Args{"names": names}, &there)
	return there == len(all), err // a routine whose arguments have changed stands beside the old one
}

// isOtherShape reports whether an object cannot be replaced because its columns, arguments, result or kind have
// changed, or because two routines have its name.
func isOtherShape(err error) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && slices.Contains([]string{"42P16", "42P13", "42809", "42725"}, pe.Code)
}

// textsOf returns the texts of the statements that a query writes.
func textsOf(ctx context.Context, tx *Tx, name string, names []string) (texts []string, err error) {
	err = tx.Query(ctx, name, Args{"names": names}, Column(&texts))
	return texts, err
}

func runTexts(ctx context.Context, db *DB, tx *Tx, texts ...string) error {
	for _, text := range texts {
		if _, err := tx.q.ExecContext(ctx, text); err != nil {
			return db.Wrap("replace views and routines: "+text, err)
		}
	}
	return nil
}
