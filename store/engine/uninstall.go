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
	var drops []string
	if db.e.Name == "postgres" {
		var names []string
		for _, t := range made.tables {
			names = append(names, t.name)
		}
		drops = append(drops, dropPolicies(names))
	}
	for _, r := range slices.Backward(repeatables) {
		drops = append(drops, r.drop())
	}
	for _, t := range slices.Backward(made.tables) {
		drops = append(drops, "DROP TABLE IF EXISTS "+t.name)
	}
	if db.e.Name == "postgres" {
		drops = append(drops, "DROP FUNCTION IF EXISTS dbjobs.refuse_reference()") // its triggers are gone with the tables
	}
	for _, st := range drops {
		if _, err := db.ddl(tx).ExecContext(ctx, st); err != nil {
			return db.Wrap(st, err)
		}
	}
	return nil
}

// dropPolicies is a statement that drops the policies on tables. With owners, a policy of one table looks into another one,
// and that one could not be dropped before it.
func dropPolicies(names []string) string {
	return `DO $$ DECLARE p record; BEGIN
  FOR p IN SELECT schemaname, tablename, policyname FROM pg_catalog.pg_policies WHERE schemaname || '.' || tablename IN ('` + strings.Join(names, "', '") + `') LOOP
    EXECUTE pg_catalog.format('DROP POLICY %I ON %I.%I', p.policyname, p.schemaname, p.tablename);
  END LOOP;
END $$`
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
