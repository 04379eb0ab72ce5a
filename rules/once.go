package rules

import (
	"slices"
	"strings"
	"time"
)

// The once form: `at TIME[, TIME…] [ZONE]`. A time is local to the zone at the
// end of the text, or else to the default zone, or has its own offset from UTC.
var onceForm = form{name: "once", claims: claimsOnce, parse: parseOnce, sentence: (*Rule).describe}

func claimsOnce(text string) bool {
	return len(text) > 3 && strings.EqualFold(text[:2], "at") && isBlank(text[2])
}

const onceGrammar = "a time is YYYY-MM-DDTHH:MM[:SS], with Z or an offset as +02:00, or with an IANA zone at the end of the text"

func parseOnce(r *Rule, in *input) error {
	list, err := readOnce(r, in)
	if err != nil {
		return err
	}
	r.rdates = list
	r.startAtDates()
	return nil
}

// startAtDates makes the earliest single date the DTSTART of a rule that names none.
func (r *Rule) startAtDates() {
	r.start, r.undated = endCivil, true
	for _, t := range r.rdates {
		r.start = min(r.start, r.zone.civil(t))
	}
	r.start = max(r.start, firstCivil)
	// DTSTART names the earliest time by the wall clock. The wall clock may show
	// the same time at a second instant. That instant is not a time of the rule.
	for _, t := range r.zone.readings(r.start, r.policy) {
		if !slices.Contains(r.rdates, t) {
			r.exdates = append(r.exdates, t)
		}
	}
}

// readOnce reads the times, and sets the rule's zone if one is named.
func readOnce(r *Rule, in *input) ([]int64, error) {
	body, at := in.text[2:], in.at+2
	if i := strings.LastIndexAny(body, " \t"); i > 0 && !strings.ContainsAny(body[i+1:i+2], "0123456789") {
		z, err := zoneNamed(body[i+1:])
		if err != nil || body[i+1:] == "" {
			return nil, refuse("once", at+i+1, body[i+1:], "%v", err)
		}
		r.zone, body = z, body[:i]
	}
	var list []int64
	for item := range strings.SplitSeq(body, ",") {
		text := strings.TrimLeft(item, " \t\n\r")
		pos := at + len(item) - len(text)
		at += len(item) + 1
		text = strings.TrimRight(text, " \t\n\r")
		some, err := r.instantsAt(text, pos)
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	return list, nil
}

// instantsAt reads one time. A wall time in a gap is read with the offset before
// the gap, and one in a fold as the policy says. A single time is never skipped.
func (r *Rule) instantsAt(text string, pos int) ([]int64, error) {
	c, rest, ok := readWall(text)
	if !ok || len(text)-len(rest) < len("2006-01-02T15:04") {
		return nil, refuse("once", pos, text, onceGrammar)
	}
	list := r.zone.meant(c, r.policy)
	if rest != "" {
		zone, err := time.Parse("Z07:00", strings.ToUpper(rest))
		if err != nil {
			return nil, refuse("once", pos+len(text)-len(rest), rest, onceGrammar)
		}
		_, off := zone.Zone()
		list = []int64{c - int64(off)}
		r.noteInstants(list)
	} else {
		r.noteDate(c)
	}
	for _, t := range list {
		if t < firstHeld || t > lastHeld {
			return nil, refuse("once", pos, text, "a time lies between %s and %s", First.Format(time.RFC3339), Last.Format(time.RFC3339))
		}
	}
	return list, nil
}
