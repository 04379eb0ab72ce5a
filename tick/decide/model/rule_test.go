package model

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// The walk and the rules must agree. If not, nothing else that the model says would mean anything.
func TestTheModelWalksAsTheRulesDo(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 60 {
		span := spans[rng.IntN(2)]
		r := randomRule(rng, span).with([]Calendar{randomCalendar(rng, span, span.From.AddDate(0, 0, 30)), randomCalendar(rng, span, span.To)})
		p, err := r.parse()
		if err != nil {
			t.Fatalf("%s: %v", r, err)
		}
		inner := Window{span.From.Add(48 * time.Hour), span.To.Add(-48 * time.Hour)}
		var want []time.Time
		for at, err := p.Next(inner.From); !at.IsZero() && !at.After(inner.To); at, err = p.Next(at) {
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, at.UTC())
		}
		if got := r.Within(span, inner); !slices.EqualFunc(got, want, time.Time.Equal) {
			t.Fatalf("%s: walked %d times, the rule has %d", r, len(got), len(want))
		}
	}
}
