package rules

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"
)

// zoneNames lists the zones of the archive.
func zoneNames() (list []string) {
	le := binary.LittleEndian
	z := []byte(zoneArchive[len(zoneArchive)-22:])
	at := int(le.Uint32(z[16:]))
	for range int(le.Uint16(z[10:])) {
		head := []byte(zoneArchive[at : at+46])
		n := int(le.Uint16(head[28:]))
		list = append(list, zoneArchive[at+46:at+46+n])
		at += 46 + n + int(le.Uint16(head[30:])) + int(le.Uint16(head[32:]))
	}
	return list
}

// Every zone of the archive gives the same offsets as in the time package, at every change and at random instants over
// three centuries.
func TestZonesAgreeWithTimePackage(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	tested := 0
	for _, name := range zoneNames() {
		if checkZoneName(name) != nil {
			continue
		}
		z, err := zoneNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		data, _ := zoneData(name)
		loc, err := time.LoadLocationFromTZData(name, []byte(data))
		if err != nil {
			t.Fatal(err)
		}
		check := func(at int64) {
			_, want := time.Unix(at, 0).In(loc).Zone()
			s := z.at(at)
			if s.off != int64(want) || at < s.from || at >= s.to {
				t.Fatalf("%s at %v: offset %d in [%d,%d), want %d", name, time.Unix(at, 0).UTC(), s.off, s.from, s.to, want)
			}
		}
		for i, s := range z.spans[1:] {
			check(s.from - 1)
			check(s.from)
			if p := z.spans[i]; p.to != s.from || p.after != s.off || s.before != p.off || p.off == s.off {
				t.Fatalf("%s: spans %+v and %+v do not join", name, p, s)
			}
		}
		for range 50 {
			check(-3e9 + rng.Int64N(12e9))
		}
		for s := z.at(endInstant - 10*366*secondsPerDay); s.to < endInstant; s = z.at(s.to) {
			check(s.from)
			check(s.to - 1)
		}
		tested++
	}
	if tested < 400 {
		t.Errorf("only %d zones were compared", tested)
	}
}

// The three ways in which a TZ string names a day are compared with days that package time counts.
func TestTZRuleDays(t *testing.T) {
	for _, c := range []struct {
		text string
		year int
		want [2]string
	}{
		{"CET-1CEST,M3.5.0,M10.5.0/3", 2026, [2]string{"2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z"}},
		{"A3B,J60/0,J61/0", 2026, [2]string{"2026-03-01T03:00:00Z", "2026-03-02T02:00:00Z"}},
		{"AAA3BBB,J60/0,J61/0", 2028, [2]string{"2028-03-01T03:00:00Z", "2028-03-02T02:00:00Z"}},
		{"AAA3BBB,59/0,60/0", 2026, [2]string{"2026-03-01T03:00:00Z", "2026-03-02T02:00:00Z"}},
		{"AAA3BBB,59/0,60/0", 2028, [2]string{"2028-02-29T03:00:00Z", "2028-03-01T02:00:00Z"}},
		{"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 2026, [2]string{"2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z"}},
		{"<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", 2026, [2]string{"2026-04-04T15:00:00Z", "2026-10-03T15:30:00Z"}},
	} {
		z, err := readTZRule(c.text, 0)
		if c.text[0] == 'A' && c.text[1] == '3' {
			if err == nil {
				t.Errorf("%s: an abbreviation has three letters", c.text)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		for i, s := range z.year(c.year) {
			if got := time.Unix(s.at, 0).UTC().Format(time.RFC3339); got != c.want[i] {
				t.Errorf("%s in %d: change %d at %s, want %s", c.text, c.year, i, got, c.want[i])
			}
		}
	}
	for _, text := range []string{"CET", "CET-1CEST,M13.1.0,M10.5.0", "CET-1CEST,M3.5.0", "CET-1CEST,M3.5.0,M10.5.0x", "<CET-1"} {
		if _, err := readTZRule(text, 0); err == nil {
			t.Errorf("%s was read", text)
		}
	}
}
