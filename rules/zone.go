package rules

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sort"
	"strings"
	"sync"
	"time"
)

// The time zone database of the Go distribution, in its own archive format. It is
// linked in, and no other database is used, so that a rule means the same on
// every host. To update it, copy lib/time/zoneinfo.zip of a newer Go release, and
// write the CODE of its update.bash into VERSION; a test compares them.
var (
	//go:embed zoneinfo/zoneinfo.zip
	zoneArchive string
	//go:embed zoneinfo/VERSION
	zoneVersion string
)

// TZDataVersion names the release of the IANA time zone database that is
// linked in, such as "2025c".
func TZDataVersion() string { return strings.TrimSpace(zoneVersion) }

// span is a stretch of instants [from, to) during which a zone keeps one
// offset (seconds east of UTC), with the offsets on either side of it.
type span struct {
	from, to           int64
	off, before, after int64
}

// zone is a time zone by its IANA name. It is immutable.
type zone struct {
	name  string
	spans []span // in order and without a gap, from the first instant on
	tail  tzRule // gives the later spans
}

var utc = &zone{name: "UTC", spans: []span{{from: math.MinInt64 / 2, to: math.MaxInt64 / 2}}}

var zones sync.Map // name → *zone; it has only names of the archive, so its size is limited

// zoneNamed returns the zone of an IANA name, such as Europe/Berlin, or UTC.
// Abbreviations (CET, EST5EDT), offsets and Local are refused, because they do
// not say which clock changes apply.
func zoneNamed(name string) (*zone, error) {
	if name == "UTC" || name == "" {
		return utc, nil
	}
	if z, ok := zones.Load(name); ok {
		return z.(*zone), nil
	}
	if err := checkZoneName(name); err != nil {
		return nil, err
	}
	data, proper := zoneData(name)
	if data == "" {
		hint := ""
		if proper != "" {
			hint = fmt.Sprintf("; did you mean %s?", proper)
		}
		return nil, fmt.Errorf("unknown time zone %q in tzdata %s%s", name, TZDataVersion(), hint)
	}
	first, list, tail, err := readTZif(data)
	if err != nil {
		return nil, fmt.Errorf("reading zone %s of tzdata %s: %w", name, TZDataVersion(), err)
	}
	z := &zone{name: name, spans: spansOf(first, list, &tail), tail: tail}
	zones.Store(name, z)
	return z, nil
}

var errZoneName = errors.New("a time zone is an IANA name such as Europe/Berlin, or UTC")

// likelyZone has, for abbreviations and words that people write as zones, the name of a zone that they may mean.
var likelyZone = map[string]string{
	"EASTERN": "America/New_York", "CENTRAL": "America/Chicago", "MOUNTAIN": "America/Denver", "PACIFIC": "America/Los_Angeles",
	"EST": "America/New_York", "EDT": "America/New_York", "CST": "America/Chicago", "CDT": "America/Chicago",
	"MST": "America/Denver", "MDT": "America/Denver", "PST": "America/Los_Angeles", "PDT": "America/Los_Angeles",
	"GMT": "Europe/London", "BST": "Europe/London", "WET": "Europe/Lisbon", "CET": "Europe/Berlin", "CEST": "Europe/Berlin", "EET": "Europe/Helsinki", "EEST": "Europe/Helsinki", "MSK": "Europe/Moscow",
	"IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "KST": "Asia/Seoul", "AEST": "Australia/Sydney", "AEDT": "Australia/Sydney",
}

func checkZoneName(name string) error {
	if len(name) > 64 {
		return errZoneName
	}
	letters := false
	for _, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z', c == '/':
			letters = true
		case c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '+', c == '-', c == '_':
		default:
			return errZoneName
		}
	}
	if likely := likelyZone[strings.ToUpper(name)]; likely != "" {
		return fmt.Errorf("%q is no zone's name: a time zone is an IANA name such as %s, or UTC", name, likely)
	}
	if !letters && name != "UTC" || name == "Local" || name == "localtime" {
		return fmt.Errorf("%q is no zone's name: %w", name, errZoneName)
	}
	return nil
}

// zoneData finds a file in the archive: stored entries of a zip, listed at its
// end. If only the case of letters differs, or the name is that of a city alone, it
// returns the proper name.
func zoneData(name string) (data, proper string) {
	le := binary.LittleEndian
	z := []byte(zoneArchive[len(zoneArchive)-22:])
	entries, at := int(le.Uint16(z[10:])), int(le.Uint32(z[16:]))
	for range entries {
		head := []byte(zoneArchive[at : at+46])
		nameLen := int(le.Uint16(head[28:]))
		entry := zoneArchive[at+46 : at+46+nameLen]
		if entry == name {
			size, local := int(le.Uint32(head[20:])), int(le.Uint32(head[42:]))
			lh := []byte(zoneArchive[local : local+30])
			local += 30 + int(le.Uint16(lh[26:])) + int(le.Uint16(lh[28:]))
			return zoneArchive[local : local+size], name
		}
		same := strings.EqualFold(entry, name)
		city := proper == "" && strings.EqualFold(entry[strings.LastIndexByte(entry, '/')+1:], name)
		if (same || city) && checkZoneName(entry) == nil {
			proper = entry
		}
		at += 46 + nameLen + int(le.Uint16(head[30:])) + int(le.Uint16(head[32:]))
	}
	return "", proper
}

// Location returns a zone of the linked tzdata in the form that the standard library uses.
func Location(name string) (*time.Location, error) {
	z, err := zoneNamed(name)
	if err != nil || z == utc {
		return time.UTC, err
	}
	data, _ := zoneData(name)
	return time.LoadLocationFromTZData(name, []byte(data))
}

// Shift is an instant from which on a zone has another offset, in seconds east of
// UTC. Name is the name of the zone's time from then on, such as CEST.
type Shift struct {
	At            time.Time // zero: the zone never had another offset before
	Before, After int
	Name          string
	Summer        bool
}

// Shifts returns the shifts of a zone before an instant. It begins with the shift
// that is in force at another instant, from.
func Shifts(name string, from, before time.Time) (list []Shift, err error) {
	location, err := Location(name)
	if err != nil {
		return nil, err
	}
	z, err := zoneNamed(name)
	if err != nil {
		return nil, err
	}
	for s := z.at(from.Unix()); s.from < before.Unix(); s = z.at(s.to) {
		in := time.Unix(max(s.from, from.Unix()), 0).In(location)
		shift := Shift{Before: int(s.before), After: int(s.off), Summer: in.IsDST()}
		if shift.Name, _ = in.Zone(); s.from > firstInstant {
			shift.At = time.Unix(s.from, 0).UTC()
		}
		list = append(list, shift)
		if s.to >= endInstant {
			break
		}
	}
	return list, nil
}

// at returns the span that holds an instant.
func (z *zone) at(t int64) span {
	last := len(z.spans) - 1
	if t >= z.spans[last].to {
		return z.tail.span(t)
	}
	i := sort.Search(last, func(i int) bool { return t < z.spans[i].to })
	return z.spans[i]
}

// civil reads an instant on the zone's wall clock.
func (z *zone) civil(t int64) int64 { return t + z.at(t).off }

// policy says how to read a wall time that does not exist, or that exists twice.
type policy struct {
	skip        bool // nonexistent: skip, else forward
	first, last bool // ambiguous: first, last, or both
}

var defaultPolicy = policy{first: true}

// instants returns the instants at which the zone's wall clock reads c, in
// order: none in a gap, two in a fold.
func (z *zone) instants(c int64) (at [2]int64, n int) {
	for s := z.at(c - 36*3600); ; s = z.at(s.to) {
		if t := c - s.off; t >= s.from && t < s.to && n < 2 {
			at[n] = t
			n++
		}
		if s.to > c+36*3600 {
			return at, n
		}
	}
}

// resolve returns the instant that a wall time means under the policy. In a gap,
// it is always the instant with the offset before the gap (RFC 5545 §3.3.5).
func (z *zone) resolve(c int64, p policy) int64 {
	at, n := z.instants(c)
	if n > 0 {
		if !p.first {
			return at[n-1]
		}
		return at[0]
	}
	s := z.at(c - 36*3600)
	for s.to+s.after <= c {
		s = z.at(s.to)
	}
	return c - s.off
}

// meant returns the instants that a single wall time means. It does what resolve
// does, but returns both instants of a fold if the policy asks for both. A time
// in a gap is never skipped, because no other time replaces it.
func (z *zone) meant(c int64, p policy) []int64 {
	if at, n := z.instants(c); n == 2 && p.first && p.last {
		return at[:]
	}
	return []int64{z.resolve(c, p)}
}

// readings returns the same as meant, within the calendar.
func (z *zone) readings(c int64, p policy) []int64 {
	list := z.meant(c, p)
	for i := range list {
		list[i] = withinCalendar(list[i])
	}
	return list
}

// withinCalendar moves an instant that has to be written in UTC into the years
// that can be written.
func withinCalendar(t int64) int64 { return min(max(t, firstCivil), endCivil-1) }
