package rules

import (
	"errors"
	"regexp"
	"strings"
	"testing"
)

// A text of another scheduler is refused with what to write here. Each rule that a refusal writes is one.
func TestTextsOfOtherSchedulers(t *testing.T) {
	written := regexp.MustCompile("`([^`]*)`")
	for text, want := range map[string]string{
		// Quartz
		"0 15 10 ? * 6L 2022-2025": "not_before and not_after of the job",
		"0 15 10 * * ? *":          "has no year",
		"0 0 22-2 * * ?":           "write `22-23,0-2`",
		"0 0 23-1 * * ?":           "write `23,0-1`",
		"0 0 0 ? * FRI-MON":        "write `FRI-SAT,SUN-MON`",
		"0 0 0 ? * 6-0":            "write `6,0`",
		"0 0 0 ? * 7-3":            "write `0-3`",
		"0 0 0 25-5 * ?":           "write `25-31,1-5`",
		"0 0 0 1 NOV-FEB ?":        "write `NOV-DEC,JAN-FEB`",
		"50-10/5 * * * *":          "runs upward",
		// EventBridge
		"rate(5 minutes)":         "write `every 5 minutes`",
		"rate(1 day)":             "write `every 1 day`",
		"cron(0 12 * * ? *)":      "five fields before the year",
		"cron(0/5 8-17 ? * 2)":    "five fields before the year",
		"0 12 * * ? *":            "five fields before the year",
		"15 10 ? * 6L 2022":       "five fields before the year",
		"at(2026-12-01T17:30:00)": "write `at 2026-12-01T17:30:00`",
		// systemd
		"*-*-* 02:00:00":                "of systemd",
		"Mon..Fri *-*-* 09:00":          "of systemd",
		"Mon..Fri 09:00":                "of systemd",
		"Mon *-*-1..7 09:00:00":         "of systemd",
		"*:0/15":                        "of systemd",
		"*-*~1 12:00":                   "of systemd",
		"*-*-01 00:00:00 Europe/Berlin": "of systemd",
		"*-01,04,07,10-01":              "of systemd",
		"2026-12-01 08:00:00":           "write `at 2026-12-01T08:00:00`",
		"Sat,Sun 20:00":                 "write `weekly on sat,sun at H:MM`",
		"Mon, Wed 20:00":                "write `weekly on mon",
		"quarterly":                     "`0 0 1 1,4,7,10 *`",
		"minutely":                      "write `every 1m`",
		// those of people
		"daily at 08:00, 12:00":           "`0 8,12 * * *`",
		"weekly on mon at 08:00,12:00:30": "`0 8,12 * * *`",
	} {
		_, err := Parse(text, Defaults{})
		var e *SyntaxError
		if !errors.As(err, &e) || !strings.Contains(e.Allowed, want) {
			t.Errorf("%s: %v, want %s", text, err, want)
			continue
		}
		for _, m := range written.FindAllStringSubmatch(e.Allowed, -1) {
			rule := strings.ReplaceAll(m[1], "H:MM", "8:00")
			if strings.Contains(e.Allowed, "runs upward") {
				rule = strings.Replace(text, e.Found, rule, 1)
			}
			if _, err := Parse(rule, Defaults{}); err != nil {
				t.Errorf("%s: told to write %s: %v", text, rule, err)
			}
		}
	}
}
