package manifest

import "slices"

// meant has the words of other schedulers that people write, each with the words to write here.
var meant = []struct {
	words []string
	where string // a key or value that is allowed where the hint fits
	write string
}{
	{[]string{"cron", "crontab", "cron_expression", "rrule"}, "rule", "write rule: it takes a cron text or an RRULE as it is"},
	{[]string{"every", "interval"}, "rule", "write rule, as in rule: every 5m"},
	{[]string{"at", "when", "time", "run_at"}, "rule", "write rule, as in rule: daily at 8:00, or rule: at 2026-12-01T17:30:00"},
	{[]string{"timezone", "time_zone", "timeZone", "tz"}, "zone", "write zone"},
	{[]string{"reboot", "startup", "at_startup", "run_on_startup"}, "on_startup", "write on_startup: true"},
	{[]string{"retries", "max_retries", "attempts", "max_attempts", "tries", "backoffLimit"}, "retry", "write retry, as in retry: 3"},
	{[]string{"command", "cmd", "run", "script", "program"}, "exec", "write sql: a statement, exec: a program with its arguments as a list, or shell: a line for /bin/sh"},
	{[]string{"url", "uri", "webhook", "request", "endpoint"}, "http", "write http"},
	{[]string{"query", "statement", "procedure"}, "sql", "write sql"},
	{[]string{"email", "send_mail"}, "mail", "write mail"},
	{[]string{"enabled", "active", "suspend", "paused"}, "disabled", "write disabled: true for a job that is not to run"},
	{[]string{"depends_on", "dependencies", "needs", "requires", "run_after"}, "after", "write after"},
	{[]string{"on_failure", "on_success", "on_error_notify", "notify", "alert", "alerts", "hooks"}, "on", "write on, as in on: {failed: JOB, recovered: JOB}"},
	{[]string{"catchup", "catch_up", "misfire", "misfire_policy", "backfill"}, "missed", "write missed: latest, all or skip"},
	{[]string{"concurrency", "concurrencyPolicy", "concurrency_policy", "allow_overlap", "coalesce", "max_instances"}, "overlap", "write overlap: wait, skip, allow or replace"},
	{[]string{"deadline", "max_runtime", "max_duration", "activeDeadlineSeconds"}, "timeout", "write timeout, as in timeout: 2 minutes"},

	{[]string{"on_failed", "on_recovered", "on_missed", "on_late", "on_lost", "on_parked", "on_paused"}, "on", "write on, as in on: {failed: JOB, recovered: JOB}"},
	{[]string{"fail", "failure", "error"}, "recovered", "write failed"},
	{[]string{"success", "succeeded", "recover", "recovery", "resolved", "ok"}, "recovered", "write recovered, which is a success after a failure"},

	{[]string{"timeout", "retry", "on_failure", "on_success"}, "expect", "write it beside http, not in it"},
	{[]string{"timeout", "retry", "on_failure", "on_success"}, "subject", "write it beside mail, not in it"},
	{[]string{"timeout", "retry", "on_failure", "on_success"}, "retry_exit", "write it beside exec or shell, not in it"},
	{[]string{"bearer", "token", "basic", "aws", "gcp"}, "auth", `write auth, as in auth: {bearer: "${secret:NAME}"}`},
	{[]string{"data", "payload"}, "json", "write json, or body for a text"},
	{[]string{"status", "statuses", "expect_status", "expected_status"}, "expect", "write expect"},
	{[]string{"command", "cmd", "program", "args", "argv", "arguments"}, "retry_exit", "write run: the program with its arguments as a list"},
	{[]string{"cwd", "workdir", "working_dir", "chdir", "folder"}, "dir", "write dir"},
	{[]string{"body", "message", "content"}, "subject", "write text"},
	{[]string{"host", "hostname", "smtp", "relay", "address"}, "server", "write server"},
	{[]string{"username", "login"}, "server", "write user"},
	{[]string{"file", "path"}, "value_file", "write value_file"},
	{[]string{"env", "variable", "var"}, "value_env", "write value_env"},

	{[]string{"never", "forbid", "Forbid", "no", "none", "deny"}, "wait-all", "write skip, and no run is made while the one before it runs, or wait, and it runs afterwards"},
	{[]string{"Allow", "parallel", "always", "yes"}, "wait-all", "write allow"},
	{[]string{"Replace", "kill", "cancel"}, "wait-all", "write replace"},
}

// instead returns what to write in place of a word of another scheduler, if these words are allowed. It returns
// an empty text for an unknown word.
func instead(word string, allowed []string) string {
	for _, m := range meant {
		if slices.Contains(m.words, word) && slices.Contains(allowed, m.where) {
			return m.write
		}
	}
	return ""
}
