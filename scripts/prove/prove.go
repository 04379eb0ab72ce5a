// Package prove says how much a test tries.
//
// The variable DBJOBS_PROVE asks for the long form; make prove sets it to 1. There, what can be counted is tried whole:
// each call with each fault, each order, each value in each column, each case on each engine. A random search has no
// whole: it tries what takes some minutes, times the number in DBJOBS_PROVE. DBJOBS_PROVE=10 searches ten times as far, and
// makes nothing else longer.
package prove

import (
	"fmt"
	"os"
	"strconv"
)

// Whole reports whether the long form is asked for.
func Whole() bool { return times() > 0 }

// Cases is how many cases a random search tries: few, and in the long form many, times the number in DBJOBS_PROVE.
func Cases(few, many int) int {
	if n := times(); n > 0 {
		return n * many
	}
	return few
}

func times() int {
	text := os.Getenv("DBJOBS_PROVE")
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		panic(fmt.Sprintf("DBJOBS_PROVE=%q: want how many times as far random searches go, 1 or more", text))
	}
	return n
}
