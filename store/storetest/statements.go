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

// MainOnEach is Main for a package some of whose tests run on a part of the engines, such as those of OnTwo. Where all of its
// tests ran, it holds that they sent each statement of the store to each engine of the list: a fault may lie in the words of
// any. The others are statements that the package leaves to other ones: NAME, or ENGINE:NAME for that engine alone.
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

// notSent says which statements this process has sent to no database of an engine of the list, but for the others.
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
