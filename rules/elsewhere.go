package rules

import (
	"errors"
	"slices"
	"strings"
)

const instantOf = "for a single time write `at %sT%s`"

// elsewhere replaces the refusal of a text that another scheduler reads by one that says what to write here.
func elsewhere(err error, text string) error {
	e, ok := errors.AsType[*SyntaxError](err)
	if !ok || e.Form == "rrule" || e.Form == "once" {
		return err
	}
	at := len(text) - len(strings.TrimLeft(text, " \t\r\n"))
	text = strings.TrimSpace(text)
	if name, inner, ok := strings.Cut(text, "("); ok && strings.HasSuffix(inner, ")") {
		return eventBridge(err, at, text, strings.ToLower(name), strings.TrimSuffix(inner, ")"))
	}
	list := strings.Fields(text)
	if len(list) > 4 || len(list) == 0 { // systemd: weekdays, a date, a time, a zone
		return err
	}
	if _, rest, ok := readWall(list[0]); ok && rest == "" && len(list) == 2 {
		if _, rest, ok := readTime(list[1], true); ok && rest == "" {
			return refuse("rule", at, text, instantOf, list[0], list[1])
		}
	}
	if slices.ContainsFunc(list, ofSystemd) {
		return refuse("rule", at, text, "this is a calendar of systemd: for \"*-*-* 02:00:00\" write `daily at 2:00`, for \"Mon..Fri 09:00\" `0 9 * * MON-FRI`, "+
			"for \"*:0/15\" `*/15 * * * *`, for \"*-*~1 18:00\" `0 18 L * *`")
	}
	return err
}

// eventBridge refuses cron(…), rate(…) and at(…).
func eventBridge(err error, at int, text, name, inner string) error {
	day, clock, _ := strings.Cut(inner, "T")
	switch interval := asInterval(inner); {
	case name == "rate" && interval != "":
		return refuse("rule", at, text, "for an interval write `%s`", interval)
	case name == "cron":
		return refuse("rule", at, text, "%s", withoutYear)
	case name == "at" && clock != "":
		return refuse("rule", at, text, instantOf, day, clock)
	}
	return err
}

const withoutYear = "EventBridge has a year behind the weekday, and counts weekdays from Sunday as 1; write the five fields before the year, as `0 12 ? * MON`"

// ofSystemd reports whether a word of a text that is no rule is a part of a calendar of systemd: *-*-01, Mon..Fri, *:0/15.
func ofSystemd(word string) bool {
	_, clock, timed := strings.Cut(word, ":")
	return strings.Contains(word, "..") || strings.Contains(word, "*-") || strings.Contains(word, "-*") || timed && strings.ContainsAny(word, "*/") && clock != ""
}

// insteadOfWord returns the hint for a rule that begins with a word of no form,
// if the word shows what is meant.
func insteadOfWord(word string) string {
	switch word {
	case "hourly":
		return "for each hour write `every 1h`, or `0 * * * *` for each full hour"
	case "minutely":
		return "for each minute write `every 1m`"
	case "quarterly":
		return "for each quarter write the months as a cron rule, as `0 0 1 1,4,7,10 *`"
	case "yearly", "annually":
		return "for each year write the day as a cron rule, as `0 8 1 1 *` for January 1st at 8:00"
	case "last", "first":
		return "for one day of each month write `monthly on the " + word + " weekday at H:MM`; in place of weekday: day, weekend day, monday … sunday"
	case "workday", "workdays", "weekday", "weekdays":
		return insteadOfEvery("weekday")
	}
	if _, ok := agentWeekday(strings.TrimSuffix(word, "s")); ok {
		return insteadOfEvery(word)
	}
	word = strings.TrimRight(word, ",")
	for day := range strings.SplitSeq(word, ",") {
		if _, ok := agentWeekday(day); !ok {
			return ""
		}
	}
	return "for these days of each week write `weekly on " + word + " at H:MM`"
}
