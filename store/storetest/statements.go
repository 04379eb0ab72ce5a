package storetest

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/engine"
)

// MainOnEach is Main for a package in which some tests run on only a part of the engines, such as
// those that use OnTwo. If all tests of the package ran, it checks that they sent each statement of
// the store to each engine of the list. An error may be in the statement of any engine. The others are
// statements that this package leaves to other packages: NAME, or ENGINE:NAME for that engine alone.
func MainOnEach(m interface{ Run() int }, others ...string) int {
	code := Main(m)
	if code != 0 || !whole() {
		return code
	}
	for _, problem := range notSent(others) {
		fmt.Fprintln(os.Stderr, problem)
		code = 1
	}
	return code
}

// whole reports whether all tests of the package ran.
func whole() bool {
	for _, name := range []string{"run", "skip", "list", "fuzz"} {
		if f := flag.Lookup("test." + name); f != nil && f.Value.String() != "" {
			return false
		}
	}
	return !testing.Short()
}

// notSent returns a problem for each statement that this process has not sent to an engine of the
// list, except the others.
func notSent(others []string) (problems []string) {
	asked := map[*engine.Engine]bool{}
	for name := range strings.SplitSeq(list(), ",") {
		e, err := engine.Of(Dialect(name) + ":")
		if err != nil {
			return []string{err.Error()}
		}
		if asked[e] {
			continue
		}
		asked[e] = true
		statements := store.Statements(e)
		sent := statements.Used()
		for _, st := range statements.Names() {
			if !slices.Contains(sent, st) && !slices.Contains(others, st) && !slices.Contains(others, e.Name+":"+st) {
				problems = append(problems, fmt.Sprintf("no test sent the statement %s to %s: some test of it has to run on each engine (storetest.Each)", st, e.Name))
			}
		}
	}
	return problems
}
