package store

import (
	"fmt"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// The ends of time: see package engine.
var (
	First = engine.First
	Last  = engine.Last
)

// instant refuses an instant from a person that not every database can hold.
func instant(t time.Time) error {
	if !t.IsZero() && !engine.Clamp(t).Equal(t) {
		return fmt.Errorf("%s is not between %s and %s", t.Format(time.RFC3339), First.Format(time.RFC3339), Last.Format(time.RFC3339))
	}
	return nil
}

// unless returns t, or zero if t equals the value that the statement uses by default.
func unless(t, same time.Time) time.Time {
	if t.Equal(same) {
		return time.Time{}
	}
	return t
}
