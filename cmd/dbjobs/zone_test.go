package main

import (
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
