package load

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// big are the tables that grow with the jobs and with the years.
var big = map[string]bool{"jobs": true, "schedules": true, "job_schedules": true, "steps": true, "pauses": true, "plans": true, "plan_rules": true,
	"runs": true, "attempts": true, "gaps": true, "changes": true, "ticks": true}

var (
	placeholders = regexp.MustCompile(`\?(, ?\?)+`)
	named        = regexp.MustCompile(`dbjobs[._](\w+)(?:\s+(?:AS\s+)?(\w+))?`)
	seqScan      = regexp.MustCompile(`Seq Scan on (\w+)|Index (?:Only )?Scan using \w+_pkey on (\w+) [^\n]*\n\s*(?:Filter|->|\z)`)
	sorts        = regexp.MustCompile(`Sort  \(cost=\S+ rows=(\d+)`)
	sqliteScan   = regexp.MustCompile(`SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?`)
)

// unplanned says which indexes a plan does not use. It is empty if the plan uses one of them.
func unplanned(engine string, plan []string, index string) string {
	all := strings.Join(plan, "\n")
	switch engine {
	case "postgres":
		index = strings.ReplaceAll(index, "PRIMARY", `\w+_pkey`)
	case "sqlite":
		index = strings.ReplaceAll(index, "PRIMARY", `USING INTEGER PRIMARY KEY|USING (COVERING )?INDEX sqlite_autoindex`)
	case "mariadb":
		index = strings.ReplaceAll(index, "runs_wake|plans_next_run|", "Select tables optimized away|") // MIN is read from the index while the plan is made
	}
	if !regexp.MustCompile(index).MatchString(all) {
		return "does not use " + index
	}
	return ""
}

// wholeTables finds our tables that a statement reads or sorts from end to end. engine is the dialect.
func wholeTables(engine, query string, plan []string, n extent) (found []string) {
	tables := map[string]string{} // by their names in the plan
	for _, m := range named.FindAllStringSubmatch(query, -1) {
		tables[m[1]], tables[m[2]], tables["dbjobs_"+m[1]] = m[1], m[1], m[1]
	}
	most := max(20*n.batch, 2000) // rows that a batch may look at
	all := strings.Join(plan, "\n")
	switch engine {
	case "postgres":
		for _, m := range seqScan.FindAllStringSubmatch(all, -1) {
			if big[m[1]] {
				found = append(found, m[0])
			}
		}
		if strings.HasPrefix(query, "WITH s AS ") || strings.HasPrefix(query, "WITH p AS ") {
			most = max(most, 100*n.batch) // need_schedule and need_pause read the jobs of a hundred pages
		}
		for _, m := range sorts.FindAllStringSubmatch(all, -1) {
			if rows, _ := strconv.Atoi(m[1]); rows > most {
				found = append(found, m[0])
			}
		}
	case "sqlite":
		for _, m := range sqliteScan.FindAllStringSubmatch(all, -1) {
			if table := tables[m[1]]; big[table] && (m[2] == "" || strings.HasPrefix(m[2], "sqlite_autoindex")) {
				found = append(found, "reads all of "+table)
			}
		}
	case "mariadb": // id | select_type | table | type | possible_keys | key | key_len | ref | rows | Extra
		for _, line := range plan {
			cells := strings.Split(line, " | ")
			rows, _ := strconv.Atoi(cells[8])
			if table := tables[cells[2]]; big[table] && rows > most && (cells[3] == "ALL" || cells[3] == "index" && cells[5] == "PRIMARY" || strings.Contains(cells[9], "filesort")) {
				found = append(found, fmt.Sprintf("%s %s of %s", cells[3], cells[9], table))
			}
		}
	}
	return found
}
