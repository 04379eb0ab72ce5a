module github.com/dbjobs/dbjobs

go 1.26

require (
	github.com/robfig/cron/v3 v3.0.1 // only tests import it
	github.com/teambition/rrule-go v1.8.2
)
