package main

import (
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/rules"
)

// noZone is the value of the variable TZ if it names no zone. Then times are shown in UTC, and a time without an offset is
// refused, because nobody would see that it was read in UTC.
var noZone string

// zoneOf returns the zone that the variable TZ names. local is the zone that Go has found: UTC, also if the host has no folder
// of zones, as in an image that holds only this program. Then the zone comes from the program. If there is none of that name,
// unknown is the name. A name may be the path of a file in a folder of zones.
func zoneOf(tz string, local *time.Location) (zone *time.Location, unknown string) {
	name := strings.TrimPrefix(tz, ":")
	switch strings.ToUpper(strings.TrimSuffix(name, "0")) {
	case "", "UTC", "GMT", "UCT":
		return local, ""
	}
	if local.String() != "UTC" || name == "/etc/localtime" { // a host without that file has UTC
		return local, ""
	}
	inFolder := name
	if _, below, found := strings.Cut(name, "/zoneinfo/"); found {
		inFolder = below
	}
	found, err := rules.Location(inFolder)
	if err != nil {
		return local, name
	}
	return found, ""
}
