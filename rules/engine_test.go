package rules

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/scripts/prove"
)

// rounds is the number of random cases that a test tries: n, a quarter of n in the short form, and 20 times n in the
// long form.
func rounds(n int) int {
	if testing.Short() {
		return prove.Cases(n/4, n*20)
	}
	return prove.Cases(n, n*20)
}

// Instants near which clocks change, by zone.
var oddNights = []struct {
	zone string
	at   string
}{
	{"America/New_York", "2026-03-08T07:00:00Z"}, {"America/New_York", "2026-11-01T06:00:00Z"},
	{"Europe/Berlin", "2026-03-29T01:00:00Z"}, {"Europe/Berlin", "2026-10-25T01:00:00Z"},
	{"Australia/Lord_Howe", "2026-04-04T15:00:00Z"}, {"Australia/Lord_Howe", "2026-10-03T15:30:00Z"},
	{"America/Sao_Paulo", "2018-11-04T03:00:00Z"}, {"America/Sao_Paulo", "2018-02-18T02:00:00Z"},
	{"Asia/Beirut", "2026-03-28T22:00:00Z"}, {"Asia/Beirut", "2026-10-24T21:00:00Z"},
	{"Pacific/Apia", "2011-12-30T10:00:00Z"}, {"Africa/Casablanca", "2026-02-15T02:00:00Z"},
	{"Africa/Casablanca", "2026-03-22T02:00:00Z"}, {"Asia/Kathmandu", "1985-12-31T18:30:00Z"},
	{"Antarctica/Troll", "2026-03-29T01:00:00Z"}, {"America/Havana", "2026-11-01T05:00:00Z"},
	{"Pacific/Kwajalein", "1993-08-21T12:00:00Z"}, {"Africa/Monrovia", "1972-01-07T00:44:30Z"},
	{"Europe/Dublin", "2090-03-26T01:00:00Z"}, {"UTC", "2026-02-28T12:00:00Z"},
	{"Asia/Gaza", "2026-03-28T00:00:00Z"}, {"America/Scoresbysund", "2026-03-29T00:00:00Z"},
}

func instant(t testing.TB, text string) int64 {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at.Unix()
}

// ruleOf makes a rule of one recurrence from the recurrence's text.
func ruleOf(c *recur, start int64, zone string, p policy) (*Rule, error) {
	z, err := zoneNamed(zone)
	if err != nil {
		return nil, err
	}
	nonexistent, ambiguous := p.names()
	text := (&Rule{zone: z, start: start, includes: []recur{*c}, policy: p}).String()
	return Parse(text, Defaults{Nonexistent: nonexistent, Ambiguous: ambiguous})
}

// Random rules around nights with clock changes give the same occurrences as the naive engine, and the four queries
// agree with each other.
func TestEngineAgreesWithNaive(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(7, 11))
	never, compared, occurrences := 0, 0, 0
	for range rounds(160) {
		night := oddNights[g.IntN(len(oddNights))]
		c := randomRecur(g)
		policies := []policy{{first: true}, {last: true}, {first: true, last: true}, {skip: true, first: true}, {skip: true, last: true}}
		p := policies[g.IntN(len(policies))]
		mid := instant(t, night.at)
		length, age := int64(36*3600), int64(g.IntN(900))*86400
		if c.freq >= daily {
			length = 40 * 86400
			if len(c.pos) == 0 && c.hours != 0 && c.minutes == 0 && c.seconds == 0 {
				length = 700 * 86400
			}
		}
		start := mid - age - int64(g.IntN(86400))
		if g.IntN(4) == 0 {
			start = mid - mid%60 - int64(g.IntN(300))*60
		}
		lo, hi := mid-length/2, mid+length/2
		r, err := ruleOf(&c, start, night.zone, p)
		if errors.Is(err, ErrNeverFires) {
			never++
			if list := naive(c, start, night.zone, p, lo, hi); len(list) > 0 {
				t.Fatalf("%s\nstart %d in %s: refused as %v, yet it fires at %v", c.String(), start, night.zone, err, time.Unix(list[0], 0).UTC())
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", c.String(), err)
		}
		want := naive(c, start, night.zone, p, lo, hi)
		agree(t, r, want, lo, hi)
		compared++
		occurrences += len(want)
	}
	if compared < rounds(100) || occurrences < rounds(5_000) {
		t.Errorf("%d rules with %d occurrences were compared, %d refused: too few to prove anything", compared, occurrences, never)
	}
}

// A set of several recurrences, single dates and exceptions is the union without the exceptions.
func TestSetsAgreeWithNaive(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(29, 31))
	compared, undecided := 0, 0
	for range rounds(110) {
		night := oddNights[g.IntN(len(oddNights))]
		mid := instant(t, night.at)
		lo, hi := mid-20*86400, mid+20*86400
		start := mid - int64(g.IntN(60))*86400 - int64(g.IntN(86400))
		z, err := zoneNamed(night.zone)
		if err != nil {
			t.Fatal(err)
		}
		set := &Rule{zone: z, start: start, policy: defaultPolicy}
		in, out := map[int64]bool{}, map[int64]bool{}
		for i := range 2 + g.IntN(3) {
			c := randomRecur(g)
			for c.freq < daily || c.seconds != 0 {
				c = randomRecur(g)
			}
			some := naive(c, start, night.zone, defaultPolicy, lo, hi)
			into := in
			if i >= 2 && g.IntN(2) == 0 {
				into = out
				set.excludes = append(set.excludes, c)
			} else {
				set.includes = append(set.includes, c)
			}
			for _, at := range some {
				into[at] = true
				if g.IntN(20) == 0 {
					set.exdates = append(set.exdates, at)
					out[at] = true
				}
			}
		}
		for range g.IntN(5) {
			at := mid + int64(g.IntN(20*86400)) - 10*86400
			set.rdates = append(set.rdates, at)
			in[at] = true
		}
		var want []int64
		for at := range in {
			if !out[at] {
				want = append(want, at)
			}
		}
		slices.Sort(want)
		r, err := Parse(set.String(), Defaults{})
		if err != nil {
			single := func(at int64) bool { return slices.Contains(set.rdates, at) }
			if takenOut := errors.Is(err, ErrUndecided) && len(set.excludes) > 0; slices.ContainsFunc(want, func(at int64) bool { return !takenOut || !single(at) }) {
				t.Fatalf("%s\n%v", set, err)
			}
			continue // an EXRULE takes out all times but single dates: such a rule is to be written without its RRULE
		}
		if _, err := r.Between(time.Unix(lo-1, 0), time.Unix(hi, 0), 0); errors.Is(err, ErrUndecided) && len(set.excludes) > 0 {
			undecided++ // an EXRULE takes out all further times
			continue
		}
		agree(t, r, want, lo, hi)
		compared++
	}
	if compared < rounds(70) || undecided > compared/20 {
		t.Errorf("%d sets were compared, %d not decided", compared, undecided)
	}
}

// agree compares the queries of a rule with all its instants in [lo, hi].
func agree(t *testing.T, r *Rule, want []int64, lo, hi int64) {
	t.Helper()
	at := func(t int64) time.Time { return time.Unix(t, 0).UTC() }
	list, err := r.Between(at(lo-1), at(hi), 0)
	if err != nil {
		t.Fatalf("%s\nBetween: %v", r, err)
	}
	got := make([]int64, len(list))
	for i := range list {
		got[i] = list[i].Unix()
	}
	if !slices.Equal(got, want) {
		for i := 0; i < max(len(got), len(want)); i++ {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Fatalf("%s\nin (%v, %v]: %d occurrences, want %d; they differ from the %dth on:\n got %v\nwant %v",
					r, at(lo-1), at(hi), len(got), len(want), i, times(got, i), times(want, i))
			}
		}
	}
	n, err := r.Count(at(lo-1), at(hi))
	if err != nil || n != int64(len(want)) {
		t.Fatalf("%s\nCount(%v, %v) = %d, %v; want %d", r, at(lo-1), at(hi), n, err, len(want))
	}
	for i, end := 0, hi+1; i < min(len(want), 500); i++ {
		prev, err := r.Prev(at(end))
		if expect := want[len(want)-1-i]; err != nil || prev.Unix() != expect {
			t.Fatalf("%s\nPrev(%v) = %v, %v; want %v", r, at(end), prev, err, at(expect))
		}
		end = prev.Unix()
	}
}

func times(list []int64, i int) (out []time.Time) {
	for ; i < len(list) && len(out) < 4; i++ {
		out = append(out, time.Unix(list[i], 0).UTC())
	}
	return out
}

// At every second around clock changes, Next and Prev give the same answers as a walk over the occurrences: no
// occurrence lies between two answers.
func TestEverySecond(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"*/7 * * * *", "17 */20 1-3 * * *", "30 2 * * *", "every 7m", "FREQ=HOURLY;INTERVAL=2;BYMINUTE=15,45",
		"FREQ=SECONDLY;INTERVAL=601;BYHOUR=0,1,2,3", "D 30", "FREQ=MINUTELY;INTERVAL=11;BYSETPOS=-1;BYSECOND=1,30"} {
		for _, night := range []int{0, 1, 4, 5, 8, 10} {
			night := oddNights[night]
			mid := instant(t, night.at)
			for _, d := range []Defaults{{}, {Nonexistent: "skip", Ambiguous: "both"}} {
				d.Zone, d.Start = night.zone, time.Unix(mid-86400-123, 0)
				r := mustParse(t, text, d)
				list, err := r.Between(time.Unix(mid-3600, 0), time.Unix(mid+2*3600, 0), 0)
				if err != nil {
					t.Fatal(err)
				}
				everySecond(t, r, mid-3600, list)
			}
		}
	}
}

func everySecond(t *testing.T, r *Rule, from int64, list []time.Time) {
	t.Helper()
	for i, at := range list {
		for s := from; s < at.Unix(); s++ {
			if next, err := r.Next(time.Unix(s, 0)); err != nil || !next.Equal(at) {
				t.Fatalf("%s: Next(%v) = %v, %v; want %v", r, time.Unix(s, 0).UTC(), next, err, at)
			}
			if i > 0 {
				if prev, err := r.Prev(time.Unix(s+1, 0)); err != nil || !prev.Equal(list[i-1]) {
					t.Fatalf("%s: Prev(%v) = %v, %v; want %v", r, time.Unix(s+1, 0).UTC(), prev, err, list[i-1])
				}
			}
		}
		from = at.Unix()
	}
}
