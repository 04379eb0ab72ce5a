package rules

import (
	"strings"
	"testing"
)

// A sentence does not say less than the rule: it has each second, the interval, and each hour.
func TestSentencesOfTimes(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]string{
		"* 5 * * * *":                                   "Every second of minute 5 of every hour (UTC).",
		"* 5 9 * * *":                                   "Every second of minute 5 of hour 9 every day (UTC).",
		"* * 9 * * *":                                   "Every second of hour 9 every day (UTC).",
		"0 0-5,20-23 * * *":                             "At minute 0 of hours 0 to 5 and 20 to 23 every day (UTC).",
		"0,1,2,3,30,45,59 * * * *":                      "At minutes 0 to 3, 30, 45 and 59 of every hour (UTC).",
		"*/7 * * * *":                                   "At minutes 0, 7, 14, …, 56 of every hour (UTC).",
		"FREQ=SECONDLY;BYMINUTE=5":                      "Every second of minute 5 of every hour (UTC).",
		"FREQ=DAILY;BYMINUTE=0,1,2,3,4":                 "At minutes 0 to 4 of hour 0 every day (UTC).",
		"FREQ=SECONDLY;BYSECOND=0,30":                   "At seconds 0 and 30 of every minute (UTC).",
		"FREQ=HOURLY;BYHOUR=1,2":                        "Every hour of the hours 1 and 2 (UTC).",
		"FREQ=HOURLY;BYHOUR=1;BYMINUTE=15":              "At 01:15 (UTC).",
		"FREQ=HOURLY;INTERVAL=2;BYHOUR=1,2;BYMINUTE=15": "Every 2 hours of the hours 1 and 2, at 01:15 and 02:15, counted from 1970-01-01 00:00:00 (UTC).",
		"FREQ=SECONDLY;INTERVAL=7;BYHOUR=1;BYMINUTE=0;BYSECOND=0": "Every 7 seconds of the hours 1, at 01:00, counted from 1970-01-01 00:00:00 (UTC).",
		"FREQ=HOURLY;INTERVAL=2;BYMINUTE=0,30":                    "Every 2 hours, at minutes 0 and 30, counted from 1970-01-01 00:00:00 (UTC).",
		"FREQ=HOURLY;INTERVAL=2;BYHOUR=1,2,3;BYMINUTE=0,30":       "Every 2 hours of the hours 1 to 3, at minutes 0 and 30, counted from 1970-01-01 00:00:00 (UTC).",
		"FREQ=MINUTELY;INTERVAL=7;BYSECOND=10,40":                 "Every 7 minutes, at seconds 10 and 40, counted from 1970-01-01 00:00:00 (UTC).",
		"FREQ=SECONDLY;INTERVAL=10;BYMINUTE=5":                    "Every 10 seconds, at minute 5 of every hour, counted from 1970-01-01 00:00:00 (UTC).",
	} {
		r := mustParse(t, rule, Defaults{})
		if got := r.form.sentence(r); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", strings.ReplaceAll(rule, "\n", `\n`), got, want)
		}
	}
}
