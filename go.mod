module github.com/dbjobs/dbjobs

go 1.26

require github.com/teambition/rrule-go v1.8.2
