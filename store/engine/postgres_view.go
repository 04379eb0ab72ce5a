package engine

import "strings"

// postgresViews are the macros of the views. From PostgreSQL 15 on, the policies of the tables decide which rows a
// login sees (see sql/postgres/routines). Older servers show a view with the rights of its owner, so the condition is
// in the view.
var postgresViews = map[string]string{
	"@clock":          "pg_catalog.statement_timestamp()",
	"@x_stale":        "x.planned IS DISTINCT FROM x.plan_input",
	"@visible_before": `((SELECT NOT i.owners FROM dbjobs.installation i) OR (`,
	"@visible_after": `) = session_user::text OR EXISTS (SELECT 1 FROM pg_catalog.pg_roles i
      WHERE i.rolname::text IN ('dbjobs_admin', 'dbjobs_ticker', 'dbjobs_reader') AND pg_catalog.pg_has_role(session_user, i.oid, 'member'))
      OR EXISTS (SELECT 1 FROM pg_catalog.pg_class i WHERE i.oid = 'dbjobs.jobs'::regclass AND pg_catalog.pg_has_role(session_user, i.relowner, 'member')))`,
	// The next time after the skipped ones. A time that another schedule of the job gives too is its own next time: it still runs. A
	// list that is not as the program writes it skips nothing.
	"@after_skips": `CASE WHEN p.skips ~ '^\[(\{"at":"[-0-9T:.]+Z"(,"[a-z_]+":("([^"\\]|\\["\\/bfnrt]|\\u(?!0000)[0-9a-f]{4})*"|[0-9]+))*\},?)+\]$'
        THEN (SELECT MIN(c.at) FROM (
          SELECT p.next_run AS at UNION ALL SELECT (k.value ->> 'then'::text)::timestamptz FROM pg_catalog.jsonb_array_elements(p.skips::jsonb) AS k(value)) AS c
          WHERE c.at >= p.next_run AND NOT EXISTS (SELECT 1 FROM pg_catalog.jsonb_array_elements(p.skips::jsonb) AS k(value)
            WHERE (k.value ->> 'at'::text)::timestamptz = c.at AND (k.value ->> 'then'::text) IS DISTINCT FROM (k.value ->> 'at'::text)
              AND c.at > pg_catalog.statement_timestamp() AND (p.decided_through IS NULL OR c.at > p.decided_through)))
        ELSE p.next_run END`,
	"@schedule_fault": scheduleFault,
}

// scheduleFault is the reason why the schedule x cannot be used, as found by the last pass that read it, or NULL.
const scheduleFault = `CASE WHEN x.calendar <> '' AND NOT EXISTS (SELECT 1 FROM dbjobs.calendars k WHERE k.name = x.calendar)
        THEN 'there is no calendar ' || x.calendar WHEN NOT @x_stale THEN x.parked END`

// alsoOfPostgresView sets the view's comment in the catalogue. If the server can do so, it also
// makes the view show each login only those rows of the tables that the login may see.
func alsoOfPostgresView(name, comment string) []string {
	return []string{
		"COMMENT ON VIEW " + name + " IS '" + strings.ReplaceAll(comment, "'", "''") + "'",
		`DO $$ BEGIN
  IF pg_catalog.current_setting('server_version_num')::integer >= 150000 THEN
    EXECUTE 'ALTER VIEW ` + name + ` SET (security_invoker = true)';
  END IF;
END $$`}
}

// postgresBarrier keeps functions of the caller from seeing a row before the condition of the view has
// been checked. It does so on servers on which no policies protect the rows: see postgresViews. With a
// barrier, the server does not use an index to find the newest of many rows.
func postgresBarrier(view *Repeatable) {
	view.Statements = append(view.Statements, `DO $$ BEGIN
  IF pg_catalog.current_setting('server_version_num')::integer < 150000 THEN
    EXECUTE 'ALTER VIEW `+view.Name+` SET (security_barrier = true)';
  END IF;
END $$`)
}
