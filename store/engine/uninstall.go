package engine

import (
	"context"
	"slices"
	"strings"
)

// DropAll drops the routines, views and tables of dbjobs, the last one first, and nothing else. If an object of
// others, such as a view, uses one of them, that is an error. Where DDL ends a transaction, it can be repeated after
// a crash: the table that records the version is dropped last.
func (db *DB) DropAll(ctx context.Context, tx *Tx) error {
	made, err := db.e.schema()
	if err != nil {
		return err
	}
	repeatables, err := db.statements.Repeatables(false)
	if err != nil {
		return err
	}
	var names, drops, after []string
	for _, t := range made.tables {
		names = append(names, t.name)
	}
	if db.e.besides != nil {
		drops, after = db.e.besides(names)
	}
	for _, r := range slices.Backward(repeatables) {
		drops = append(drops, r.drop())
	}
	for _, name := range slices.Backward(names) {
		drops = append(drops, "DROP TABLE IF EXISTS "+name)
	}
	for _, st := range append(drops, after...) {
		if _, err := db.ddl(tx).ExecContext(ctx, st); err != nil {
			return db.Wrap(st, err)
		}
	}
	return nil
}

// DropSchema drops the schema that the migrations make, if the engine has one. It reports whether the schema stays,
// because it has other objects.
func (db *DB) DropSchema(ctx context.Context) (stays bool, err error) {
	if !db.Has("others_in_schema") {
		return false, nil
	}
	var others int
	if err := db.Row(ctx, "others_in_schema", nil, &others); err != nil || others > 0 {
		return others > 0, err
	}
	_, err = db.pool.ExecContext(ctx, "DROP SCHEMA IF EXISTS "+strings.TrimSuffix(db.e.prefix, "."))
	return false, db.Wrap("drop the schema", err)
}
