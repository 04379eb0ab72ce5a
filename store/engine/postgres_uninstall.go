package engine

import "strings"

// besidesPostgres has what is dropped with the tables. With owners, a policy of one table looks into another one, and that
// one could not be dropped before it. The functions of the triggers can only go when these are gone with their tables.
func besidesPostgres(tables []string) (before, after []string) {
	return []string{`DO $$ DECLARE p record; BEGIN
  FOR p IN SELECT schemaname, tablename, policyname FROM pg_catalog.pg_policies WHERE schemaname || '.' || tablename IN ('` + strings.Join(tables, "', '") + `') LOOP
    EXECUTE pg_catalog.format('DROP POLICY %I ON %I.%I', p.policyname, p.schemaname, p.tablename);
  END LOOP;
END $$`}, []string{"DROP FUNCTION IF EXISTS dbjobs.refuse_reference()", "DROP FUNCTION IF EXISTS dbjobs.refuse_name()", "DROP FUNCTION IF EXISTS dbjobs.refuse_removal()",
			"DROP FUNCTION IF EXISTS dbjobs.leave_unseen()", "DROP FUNCTION IF EXISTS dbjobs.keep_cap()"}
}
