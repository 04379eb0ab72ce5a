package rules

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"
)

// zoneNames lists the archive.
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

// Every zone of the archive reads as the time package reads it, at every
// change and at random instants over three centuries.
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
