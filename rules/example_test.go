package rules_test

import (
	"fmt"
	"log"
	"time"

	"github.com/dbjobs/dbjobs/rules"
)

func ExampleParse() {
	r, err := rules.Parse("30 2 * * *", rules.Defaults{Zone: "Europe/Berlin"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r)
	at := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	for range 2 {
		if at, err = r.Next(at); err != nil {
			log.Fatal(err)
		}
		fmt.Println(at.Format(time.RFC3339))
	}
	// Output:
	// DTSTART;TZID=Europe/Berlin:19700101T000000
	// RRULE:FREQ=DAILY;BYHOUR=2;BYMINUTE=30;BYSECOND=0
	// X-DBJOBS-NONEXISTENT:forward
	// X-DBJOBS-AMBIGUOUS:first
	// 2026-03-29T01:30:00Z
	// 2026-03-30T00:30:00Z
}

func ExampleParse_refused() {
	_, err := rules.Parse("0 25 * * *", rules.Defaults{})
	fmt.Println(err)
	_, err = rules.Parse("0 0 30 2 *", rules.Defaults{})
	fmt.Println(err)
	// Output:
	// cron rule: at position 3, found "25": the hour is 0-23; also *, ranges a-b, steps */n, lists, and ~ for a value from the schedule's name
	// the rule never fires: no day and time fits all its parts
}

func ExampleRule_Count() {
	r, err := rules.Parse("* * * * * *", rules.Defaults{Zone: "America/New_York"})
	if err != nil {
		log.Fatal(err)
	}
	year := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	n, err := r.Count(year, year.AddDate(1, 0, 0))
	fmt.Println(n, err)
	// Output: 31536000 <nil>
}
