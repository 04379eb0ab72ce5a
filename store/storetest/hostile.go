package storetest

import (
	"database/sql"
	"strings"
	"testing"
)

// Functions are the functions that our statements for PostgreSQL call.
var Functions = []string{"aclexplode", "array_to_string", "chr", "count", "current_database", "current_schemas", "current_setting", "format", "has_sequence_privilege", "has_table_privilege", "isfinite", "json_to_recordset", "jsonb_array_elements", "jsonb_array_elements_text", "jsonb_build_array", "jsonb_extract_path_text", "jsonb_typeof", "max", "min", "octet_length",
	"pg_advisory_xact_lock", "pg_backend_pid", "pg_get_expr", "pg_get_serial_sequence", "pg_has_role", "pg_try_advisory_xact_lock", "quote_ident", "quote_nullable", "right", "row_number", "row_security_active", "split_part", "statement_timestamp", "string_agg", "strpos", "substr", "sum", "to_regclass", "unnest"}

// operators are the operators that our statements use. Some appear there only as IN, BETWEEN or LIKE.
var operators = []string{"=", "<>", "<", "<=", ">", ">=", "||", "+", "-", "*", "/", "@>", "~~", "~", "->>"}

// types are the types in our statements, and the types to which the engine might convert them.
var types = []string{"boolean", "integer", "bigint", "double precision", "numeric", "text", "varchar", "name", "timestamptz", "timestamp", "date", "interval",
	"uuid", "json", "jsonb", "tid", "bit"}

// Hostile makes a schema "hostile" in a database on PostgreSQL, and puts it first on the search path of every new
// session. It fills the schema with functions and operators that a statement may find in place of the engine's
// own. For each function that our statements call, there is one for each type of argument. For each operator,
// there is one for each pair of types for which the engine has none. A caller of one of them gets an error.
func Hostile(t testing.TB, db *sql.DB) {
	t.Helper()
	var b strings.Builder
	b.WriteString("CREATE SCHEMA hostile;\n")
	function := func(name, args, returns string) {
		b.WriteString("CREATE FUNCTION hostile." + name + "(" + args + ") RETURNS " + returns +
			" LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE EXCEPTION 'a hostile function was called'; END $$;\n")
	}
	for _, name := range Functions {
		function(name, "", "text")
		for _, t := range types {
			function(name, t, "text")
			function(name, t+"[]", "text")
			function(name, "text, "+t, "text")
		}
	}
	for _, l := range types {
		for _, r := range types {
			function("compare", l+", "+r, "boolean")
			function("compute", l+", "+r, l)
		}
	}
	// The engine itself knows best which operators it has.
	b.WriteString(`DO $$ DECLARE o record; BEGIN
  FOR o IN SELECT op, l, r FROM unnest('{` + strings.Join(operators, ",") + `}'::text[]) op, unnest('{` + strings.Join(types, ",") + `}'::regtype[]) l,
    unnest('{` + strings.Join(types, ",") + `}'::regtype[]) r
    WHERE NOT EXISTS (SELECT 1 FROM pg_operator p WHERE p.oprname = op AND p.oprleft = l AND p.oprright = r) LOOP
    EXECUTE format('CREATE OPERATOR hostile.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = hostile.%s)', o.op, o.l, o.r,
      CASE WHEN o.op IN ('||', '+', '-', '*', '/') THEN 'compute' ELSE 'compare' END);
  END LOOP;
  EXECUTE format('ALTER DATABASE %I SET search_path = hostile, public', current_database());
END $$;`)
	if _, err := db.Exec(b.String()); err != nil {
		t.Fatal(err)
	}
}
