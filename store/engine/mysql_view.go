package engine

// mysqlBarrier makes the server build a table of a view's rows before it computes a caller's condition for
// any of them. The server does not merge a view with a LIMIT into the query, and pushes no condition into it.
func mysqlBarrier(view *Repeatable) { view.Statements[0] += "\nLIMIT 18446744073709551615" }

// mysqlViews are the macros of the views. A view shows the rows that the account that migrated may
// see. So each view has a condition. If the installation has owners, a view shows only the rows of the
// login. The account that migrated still sees all rows.
var mysqlViews = map[string]string{
	"@clock":          "UTC_TIMESTAMP(6)",
	"@x_stale":        "x.stale = 1",
	"@visible_before": "((SELECT i.owners FROM dbjobs.installation i WHERE i.id = 1) = 0 OR CONVERT(LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))) USING utf8mb4) COLLATE utf8mb4_bin IN (",
	"@visible_after":  ", CONVERT(LEFT(CURRENT_USER(), CHAR_LENGTH(CURRENT_USER()) - LOCATE('@', REVERSE(CURRENT_USER()))) USING utf8mb4) COLLATE utf8mb4_bin))",
	// The next time after the skipped ones. A time that another schedule of the job gives too is its own next time: it still runs.
	"@after_skips": `(SELECT MIN(c.at) FROM (SELECT t.job_id, t.next_run AS at FROM dbjobs.plans t WHERE t.skips IS NOT NULL
          UNION ALL SELECT t.job_id, CAST(REPLACE(REPLACE(k.after, 'T', ' '), 'Z', '') AS DATETIME(6)) FROM dbjobs.plans t
            CROSS JOIN JSON_TABLE(CASE WHEN JSON_VALID(t.skips) THEN t.skips ELSE '[]' END, '$[*]' COLUMNS (after varchar(40) PATH '$.then')) AS k
            WHERE t.skips IS NOT NULL) AS c
          WHERE c.job_id = p.job_id AND c.at >= p.next_run AND NOT EXISTS (SELECT 1 FROM dbjobs.plans t
            CROSS JOIN JSON_TABLE(CASE WHEN JSON_VALID(t.skips) THEN t.skips ELSE '[]' END, '$[*]' COLUMNS (at varchar(40) PATH '$.at', after varchar(40) PATH '$.then')) AS k
            WHERE t.job_id = c.job_id AND NOT (k.after <=> k.at) AND CAST(REPLACE(REPLACE(k.at, 'T', ' '), 'Z', '') AS DATETIME(6)) = c.at
              AND c.at > UTC_TIMESTAMP(6) AND (t.decided_through IS NULL OR c.at > t.decided_through)))`,
	"@schedule_fault": `CASE WHEN x.calendar <> '' AND NOT EXISTS (SELECT 1 FROM dbjobs.calendars k WHERE k.name = x.calendar)
        THEN CONCAT('there is no calendar ', x.calendar) WHEN x.stale IS NULL THEN x.parked END`,
}
