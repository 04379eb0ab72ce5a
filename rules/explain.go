package rules

import (
	"fmt"
	"strings"
	"time"
)

// Explanation says what a rule means. It is the text and the JSON view of
// `dbjobs rule explain`.
type Explanation struct {
	Form      string       `json:"form"`
	Rule      string       `json:"rule"`      // as it was given
	Sentence  string       `json:"sentence"`  // in English, one sentence
	Canonical string       `json:"canonical"` // RFC 5545 text
	Zone      string       `json:"zone"`
	TZData    string       `json:"tzdata"` // release of the zone database
	Next      []Occurrence `json:"next"`   // up to five
	Last      *Occurrence  `json:"last,omitempty"`
	Holidays  []Holiday    `json:"holidays,omitempty"` // what the calendar takes out or moves in the next year; up to ten
	OddNights []OddNight   `json:"odd_nights"`         // the next two clock changes of the zone
}

// Occurrence is one time, in UTC and on the wall clock of its zone, with the
// offset.
type Occurrence struct {
	At    time.Time `json:"at"`
	Local string    `json:"local"`
}

// OddNight is a clock change, and what the rule does around it.
type OddNight struct {
	At     time.Time    `json:"at"`
	Change string       `json:"change"` // such as "02:00 becomes 03:00"
	Runs   []Occurrence `json:"runs"`   // in the three hours on either side, at most six
	Remark string       `json:"remark"`
}

// explained is how many times an Explanation lists.
const explained = 5

// Explain says what the rule means from an instant on. The error wraps
// ErrUndecided.
func Explain(r *Rule, after time.Time) (*Explanation, error) {
	e := &Explanation{
		Form: r.form.name, Rule: r.source, Sentence: r.form.sentence(r), Canonical: r.String(),
		Zone: r.Zone(), TZData: TZDataVersion(), Next: []Occurrence{}, OddNights: []OddNight{},
	}
	list, err := r.Between(after, time.Unix(endInstant, 0), explained)
	if err != nil {
		return nil, err
	}
	for _, t := range list {
		e.Next = append(e.Next, r.occurrence(t))
	}
	if r.calendar != nil {
		e.Sentence += " " + r.calendarSentence()
	}
	if e.Holidays, err = r.Holidays(after, after.AddDate(1, 0, 0), 2*explained, nil); err != nil {
		return nil, err
	}
	last, ends, err := r.Last()
	if err != nil {
		return nil, err
	}
	if ends {
		o := r.occurrence(last)
		e.Last = &o
	}
	for s := r.zone.at(floor(after)); len(e.OddNights) < 2 && s.to < endInstant; s = r.zone.at(s.to) {
		night, err := r.oddNight(&s)
		if err != nil {
			return nil, err
		}
		e.OddNights = append(e.OddNights, night)
	}
	return e, nil
}

func (r *Rule) occurrence(t time.Time) Occurrence {
	return Occurrence{At: t, Local: r.local(t.Unix())}
}

// local writes an instant as the wall clock of the rule's zone shows it, such
// as "Mon 2026-03-30 02:30:00 +02:00".
func (r *Rule) local(t int64) string { return r.zone.local(t) }

// Local returns an instant by the wall clock of a zone, such as "Mon 2026-03-30
// 02:30:00 +02:00". It is in UTC if there is no such zone.
func Local(t time.Time, zone string) string {
	z, err := zoneNamed(zone)
	if err != nil {
		z = utc
	}
	return z.local(t.Unix())
}

func (z *zone) local(t int64) string {
	off := int(z.at(t).off)
	return time.Unix(t, 0).In(time.FixedZone("", off)).Format("Mon 2006-01-02 15:04:05 -07:00")
}

// oddNight examines the change that ends a span.
func (r *Rule) oddNight(s *span) (OddNight, error) {
	hhmm := func(t, off int64) string { return time.Unix(t+off, 0).UTC().Format("15:04") }
	n := OddNight{
		At: time.Unix(s.to, 0).UTC(), Runs: []Occurrence{},
		Change: fmt.Sprintf("%s becomes %s", hhmm(s.to, s.off), hhmm(s.to, s.after)),
	}
	around := 3 * time.Hour
	list, err := r.Between(n.At.Add(-around-1), n.At.Add(around), 6)
	if err != nil {
		return n, err
	}
	for _, t := range list {
		n.Runs = append(n.Runs, r.occurrence(t))
	}
	m, err := r.meetsChange(s)
	n.Remark = m.remark(s.after > s.off)
	return n, err
}

// Text is the explanation for people to read.
func (e *Explanation) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", e.Sentence)
	for i, l := range strings.Split(e.Canonical, "\n") {
		label := "Canonical"
		if i > 0 {
			label = ""
		}
		fmt.Fprintf(&b, "%-12s %s\n", label, l)
	}
	fmt.Fprintf(&b, "%-12s %s (tzdata %s)\n", "Zone", e.Zone, e.TZData)
	if len(e.Next) == 0 {
		fmt.Fprintf(&b, "%-12s none: the rule is exhausted\n", "Next")
	}
	for i, o := range e.Next {
		label := "Next"
		if i > 0 {
			label = ""
		}
		fmt.Fprintf(&b, "%-12s %s  %s\n", label, o.At.Format(time.RFC3339), o.Local)
	}
	if e.Last != nil {
		fmt.Fprintf(&b, "%-12s %s  %s\n", "Last", e.Last.At.Format(time.RFC3339), e.Last.Local)
	}
	for i, h := range e.Holidays {
		label := "Holidays"
		if i > 0 {
			label = ""
		}
		fmt.Fprintf(&b, "%-12s %s\n", label, h.Text())
	}
	for _, n := range e.OddNights {
		fmt.Fprintf(&b, "%-12s %s  %s: %s\n", "Clock change", n.At.Format(time.RFC3339), n.Change, n.Remark)
		for _, o := range n.Runs {
			fmt.Fprintf(&b, "%-12s   %s  %s\n", "", o.At.Format(time.RFC3339), o.Local)
		}
	}
	return b.String()
}
