package engine

import (
	"context"
	"slices"
)

// DropAll drops the routines, views and tables of dbjobs, the last one first, and nothing else. If an object of
// others, such as a view, uses one of them, that is an error. Where DDL ends a transaction, it can be repeated after
// a crash: the table that records the version is dropped last.
func (db *DB) DropAll(ctx context.Context, tx *Tx) error {
	tables, _, err := db.e.schema()
	if err != nil {
		return err
	}
	repeatables, err := db.e.Repeatables(false)
	if err != nil {
		return err
	}
	var drops []string
	for _, r := range slices.Backward(repeatables) {
		drops = append(drops, r.drop())
	}
	for _, t := range slices.Backward(tables) {
		drops = append(drops, "DROP TABLE IF EXISTS "+t.name)
	}
	for _, st := range drops {
		if _, err := db.ddl(tx).ExecContext(ctx, st); err != nil {
			return db.Wrap(st, err)
		}
	}
	return nil
}

// DropSchema drops the schema that the migrations make, if the engine has one. It reports whether the schema stays,
// because it has other objects.
func (db *DB) DropSchema(ctx context.Context) (stays bool, err error) {
	if db.e.Name != "postgres" {
		return false, nil
	}
	var others int
	if err := db.Row(ctx, "others_in_schema", nil, &others); err != nil || others > 0 {
		return others > 0, err
	}
	_, err = db.pool.ExecContext(ctx, "DROP SCHEMA IF EXISTS dbjobs")
	return false, db.Wrap("drop the schema", err)
}
