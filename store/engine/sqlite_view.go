package engine

// sqliteViews are the macros of the views.
var sqliteViews = map[string]string{
	"@clock":          "strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')",
	"@x_stale":        "x.planned IS NOT x.plan_input",
	"@visible_before": "(1 = 1 OR '' = ", // a file has no users
	"@visible_after":  ")",
	// The next time after the skipped ones. A time that another schedule of the job gives too is its own next time: it still runs.
	"@after_skips": `(SELECT MIN(c.at) FROM (
          SELECT p.next_run AS at UNION ALL SELECT strftime('%Y-%m-%dT%H:%M:%f000Z', k.value ->> 'then') FROM json_each(CASE WHEN json_valid(p.skips) THEN p.skips ELSE '[]' END) AS k) AS c
          WHERE c.at >= p.next_run AND NOT EXISTS (SELECT 1 FROM json_each(CASE WHEN json_valid(p.skips) THEN p.skips ELSE '[]' END) AS k
            WHERE strftime('%Y-%m-%dT%H:%M:%f000Z', k.value ->> 'at') = c.at AND k.value ->> 'then' IS NOT k.value ->> 'at' AND c.at > strftime('%Y-%m-%dT%H:%M:%f000Z', 'now') AND c.at > COALESCE(p.decided_through, '')))`,
	"@schedule_fault": `CASE WHEN x.calendar <> '' AND NOT EXISTS (SELECT 1 FROM dbjobs.calendars k WHERE k.name = x.calendar)
        THEN 'there is no calendar ' || x.calendar WHEN x.planned IS x.plan_input THEN x.parked END`,
}
