package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// A host without a folder of zones has them all the same: they are in the program.
func TestZoneOfTZ(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tz, found     string // found: what Go has found on the host
		want, unknown string
	}{
		{"", "Local", "Local", ""},
		{"Europe/Berlin", "Local", "Local", ""},
		{"Europe/Berlin", "UTC", "Europe/Berlin", ""},
		{":Europe/Berlin", "UTC", "Europe/Berlin", ""},
		{"UTC", "UTC", "UTC", ""},
		{"utc", "UTC", "UTC", ""},
		{"UTC0", "UTC", "UTC", ""},
		{"Etc/UTC", "UTC", "Etc/UTC", ""},
		{":/etc/localtime", "UTC", "UTC", ""},
		{":/usr/share/zoneinfo/Europe/Berlin", "/usr/share/zoneinfo/Europe/Berlin", "/usr/share/zoneinfo/Europe/Berlin", ""},
		{":/usr/share/zoneinfo/Europe/Berlin", "UTC", "Europe/Berlin", ""},
		{"/usr/share/zoneinfo/UTC", "UTC", "UTC", ""},
		{"/usr/share/zoneinfo/Europe/Berlinn", "UTC", "UTC", "/usr/share/zoneinfo/Europe/Berlinn"},
		{"/srv/berlin", "UTC", "UTC", "/srv/berlin"},
		{"Europe/Berlinn", "UTC", "UTC", "Europe/Berlinn"},
		{"CET-1CEST", "UTC", "UTC", "CET-1CEST"},
	} {
		zone, unknown := zoneOf(c.tz, time.FixedZone(c.found, 0))
		if got := zone.String(); got != c.want || unknown != c.unknown {
			t.Errorf("TZ=%s, where Go has found %s: %s, unknown %q; want %s, unknown %q", c.tz, c.found, got, unknown, c.want, c.unknown)
		}
	}
}

// A login session may have another zone than cron. TZ precedes as everywhere, and a difference is said.
func TestZoneOfTheMachine(t *testing.T) {
	t.Parallel()
	const none = "none" // there is no such variable, or file
	for _, c := range []struct{ tz, localtime, timezone, want, remark string }{
		{none, "Europe/Berlin", "Europe/Berlin", "Europe/Berlin", ""},
		{none, none, "Europe/Berlin", "Europe/Berlin", ""},
		{none, "Europe/Berlin", "Europe/Paris", "Europe/Berlin", ""}, // cron does not read the last one
		{"Etc/UTC", "UTC", none, "UTC", ""},
		{"", "Etc/UTC", none, "UTC", ""},
		{":Europe/Berlin", "posix/Europe/Berlin", none, "Europe/Berlin", ""},
		{":/etc/localtime", "Europe/Berlin", none, "Europe/Berlin", ""},
		{"CET-1CEST", "Europe/Berlin", none, "Europe/Berlin", ""},
		{"Europe/Berlin", none, none, "Europe/Berlin", ""},
		{"Europe/Berlin", "Mars/Base", none, "Europe/Berlin", ""},
		{"Europe/Berlin", "Europe/Berlin", "UTC", "Europe/Berlin", ""},
		{"Europe/Berlin", "UTC", none, "Europe/Berlin", "TZ is Europe/Berlin, and /etc/localtime UTC: "},
		{"Europe/Berlin", none, "Etc/UTC", "Europe/Berlin", "TZ is Europe/Berlin, and /etc/timezone UTC: "},
		{"", "Europe/Berlin", none, "UTC", "TZ is UTC, and /etc/localtime Europe/Berlin: "},
		{none, "Mars/Base", none, "", ""},
	} {
		places := slices.DeleteFunc([]zoneAt{{"TZ", c.tz}, {"/etc/localtime", c.localtime}, {"/etc/timezone", c.timezone}},
			func(z zoneAt) bool { return z.name == none })
		zone, remark := zoneAmong(places)
		if zone != c.want || !strings.HasPrefix(remark, c.remark) || (remark == "") != (c.remark == "") {
			t.Errorf("%+v: %q, %q", c, zone, remark)
		}
	}
}
