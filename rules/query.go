package rules

import (
	"slices"
	"strings"
	"time"
)

// Next returns the first occurrence strictly after an instant, in UTC. The zero
// time without an error means that there is none: the rule is exhausted. The
// error wraps ErrUndecided. The cost does not depend on how old the rule is.
func (r *Rule) Next(after time.Time) (time.Time, error) {
	b := budget{searchSteps}
	t, ok := r.next(floor(after)+1, &b)
	return answer(t, ok, &b)
}

// Prev returns the last occurrence strictly before an instant, in UTC; the zero
// time if there is none.
func (r *Rule) Prev(before time.Time) (time.Time, error) {
	b := budget{searchSteps}
	t, ok := r.prev(ceil(before)-1, &b)
	return answer(t, ok, &b)
}

// floor returns the last whole second at or before an instant, ceil the first one
// at or after it. Both keep the result near the calendar.
func floor(t time.Time) int64 { return min(max(t.Unix(), firstInstant), endInstant) }

func ceil(t time.Time) int64 {
	if t.Nanosecond() > 0 {
		return floor(t) + 1
	}
	return floor(t)
}

func answer(t int64, ok bool, b *budget) (time.Time, error) {
	switch {
	case ok:
		return time.Unix(t, 0).UTC(), nil
	case b.over():
		return time.Time{}, ErrUndecided
	}
	return time.Time{}, nil
}

// Between returns the occurrences in (from, to], in order: at most limit of
// them, or all if limit is 0 or less. Each of them may cost as much as Next.
func (r *Rule) Between(from, to time.Time, limit int) ([]time.Time, error) {
	var list []time.Time
	last := floor(to)
	for t := floor(from); limit <= 0 || len(list) < limit; {
		b := budget{searchSteps}
		at, ok := r.next(t+1, &b)
		if !ok && b.over() {
			return list, ErrUndecided
		}
		if !ok || at > last {
			break
		}
		list = append(list, time.Unix(at, 0).UTC())
		t = at
	}
	return list, nil
}

// next returns the first occurrence at or after t. An occurrence beyond the end
// of time does not count: the rule has ended.
func (r *Rule) next(t int64, b *budget) (int64, bool) {
	if r.moves() {
		return r.moved(t, 1, b)
	}
	return r.rawNext(t, b)
}

// rawNext is next without the moves of a calendar.
func (r *Rule) rawNext(t int64, b *budget) (int64, bool) {
	for t = max(t, firstHeld); t <= lastHeld && b.spend(); {
		best, found := int64(0), false
		for i := range r.series {
			if at, ok := r.series[i].next(t, b); ok && (!found || at < best) {
				best, found = at, true
			}
		}
		if b.over() {
			return 0, false
		}
		if i, _ := slices.BinarySearch(r.rdates, t); i < len(r.rdates) && (!found || r.rdates[i] < best) {
			best, found = r.rdates[i], true
		}
		if !found || best > lastHeld {
			return best, false
		}
		_, through, taken := r.dayTaken(best)
		if !taken {
			through, taken = r.ruledOut(best, 1, b)
		}
		if !taken {
			return best, !b.over()
		}
		t = through + 1
	}
	return 0, false
}

// prev returns the last occurrence at or before t.
func (r *Rule) prev(t int64, b *budget) (int64, bool) {
	if r.moves() {
		return r.moved(t, -1, b)
	}
	return r.rawPrev(t, b)
}

// rawPrev is prev without the moves of a calendar.
func (r *Rule) rawPrev(t int64, b *budget) (int64, bool) {
	for t = min(t, lastHeld); t >= firstHeld && b.spend(); {
		best, found := int64(0), false
		for i := range r.series {
			if at, ok := r.series[i].prev(t, b); ok && (!found || at > best) {
				best, found = at, true
			}
		}
		if b.over() {
			return 0, false
		}
		if i, _ := slices.BinarySearch(r.rdates, t+1); i > 0 && (!found || r.rdates[i-1] > best) {
			best, found = r.rdates[i-1], true
		}
		if !found || best < firstHeld {
			return best, false
		}
		from, _, taken := r.dayTaken(best)
		if !taken {
			from, taken = r.ruledOut(best, -1, b)
		}
		if !taken {
			return best, !b.over()
		}
		t = from - 1
	}
	return 0, false
}

// Last returns the rule's last occurrence, in UTC. It returns false for a rule
// that never ends: one without COUNT and UNTIL that has more than single dates.
func (r *Rule) Last() (time.Time, bool, error) {
	for i := range r.series {
		if r.series[i].end >= noUntil {
			return time.Time{}, false, nil
		}
	}
	b := budget{searchSteps}
	t, ok := r.prev(endInstant, &b)
	at, err := answer(t, ok, &b)
	return at, ok, err
}

// Ends returns a text for the caller to store beside the rule's canonical text,
// and to give back as Defaults.Ends. It begins with the release of the zone
// database by which the rule was read. After it come the instants at which the
// COUNTs of the rule end.
func (r *Rule) Ends() string {
	var b strings.Builder
	b.WriteString(TZDataVersion())
	for _, t := range r.ends {
		b.WriteByte(' ')
		writeStamp(&b, t)
		b.WriteByte('Z')
	}
	return b.String()
}

// Release returns the release of the zone database with which a text of Ends was made; empty for an empty text.
func Release(ends string) string {
	release, _, _ := strings.Cut(ends, " ")
	return release
}

// Outdated reports whether a text of Ends comes from an older release of the zone
// database than the one that is linked in: since then, the clock of the rule's
// zone may have got other changes. A newer release knows these.
func Outdated(ends string) bool { return ends != "" && Release(ends) < TZDataVersion() }

// HasInstants reports whether a canonical text has instants that were made of wall
// times, by the zone database of that time: single dates, the ends of recurrences,
// and the start from which an interval counts. With another release, only the text
// of the author has their meaning.
func HasInstants(text string) bool {
	counts := strings.HasPrefix(text, "DTSTART:") && !strings.Contains(text, ";BY")
	return counts || strings.Contains(text, "\nRDATE") || strings.Contains(text, "\nEXDATE:") || strings.Contains(text, ";UNTIL=")
}

// knownEnds reads a text of Ends. It returns nil if another release of the zone
// database was used, or if the text does not fit the rule: then the ends are
// found again.
func (r *Rule) knownEnds(text string) []int64 {
	want := 0
	for _, list := range [2][]recur{r.includes, r.excludes} {
		for i := range list {
			if list[i].count > 0 {
				want++
			}
		}
	}
	fields := strings.Fields(text)
	if want == 0 || len(fields) != want+1 || fields[0] != TZDataVersion() {
		return nil
	}
	ends := make([]int64, want)
	for i, f := range fields[1:] {
		s, err := readStamp("rule", 0, f)
		if err != nil || !s.utc {
			return nil
		}
		ends[i] = s.civil
	}
	return ends
}
