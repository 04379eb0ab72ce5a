package engine

import (
	"fmt"
	"slices"
	"strings"
)

// pathProblem says what is wrong with the search path of our sessions, and so of those of jobs, and what
// to do. It is empty if nothing is wrong. path is the value of @path: the schemas in which a name is
// looked up, in order.
func pathProblem(path, login string) string {
	schemas := strings.Split(path, "\x1F")
	if i := slices.Index(schemas, "pg_catalog"); i > 0 && !strings.HasPrefix(schemas[i-1], "pg_temp") {
		return fmt.Sprintf("the search path of the login %q names the schema %s before pg_catalog, so anybody who may create objects there can replace "+
			"the engine's operators: ALTER ROLE %q SET search_path = … without pg_catalog", login, schemas[0], login)
	}
	if slices.Contains(schemas, "dbjobs") {
		return fmt.Sprintf("the search path of the login %q contains the schema dbjobs (\"$user\" does for a login with that name), so a job's "+
			"DELETE FROM jobs would delete from the table of dbjobs: ALTER ROLE %q SET search_path = public, or use another login", login, login)
	}
	return ""
}
