package crash

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// twin is the store without one of its guards. If the harness finds nothing wrong with it, the harness is at fault.
type twin struct {
	name    string
	engines string // the engines on which this is the guard
	long    string // the engines on which only the long form tries it
	gone    []guard
	bare    bool // without transactions
	kind    faultKind
	at      *regexp.Regexp // the calls that the guard is about: kind and text
	shows   *regexp.Regexp // the problem that is seen without it
	stages  func() []stage // nil: those of the engine
	removed sync.Map       // guards, by their parts
}

func (w *twin) rewrite(text string) string {
	for _, g := range w.gone {
		if changed := g.part.ReplaceAllString(text, g.without); changed != text {
			w.removed.Store(g.part, true)
			text = changed
		}
	}
	return text
}

// kept are the guards that no statement had, and that are therefore still there. SQLite has no locks of rows.
func (w *twin) kept(engine string) (parts []string) {
	for _, g := range w.gone {
		if _, removed := w.removed.Load(g.part); !removed && (engine != "sqlite" || !strings.Contains(g.part.String(), "SKIP LOCKED")) {
			parts = append(parts, g.part.String())
		}
	}
	return parts
}

func without(part string) guard { return guard{regexp.MustCompile(part), ""} }

var (
	// The lock of the plans is the right to decide. Where there is no lock, the version is that right.
	planLock    = guard{regexp.MustCompile(`(?s)(FROM \S*plans(?: p)? WHERE \(?job_id .*ORDER BY job_id) FOR UPDATE SKIP LOCKED`), "$1"}
	runLock     = guard{regexp.MustCompile(`(?s)(FROM \S*runs WHERE \(?id .*ORDER BY id) FOR UPDATE SKIP LOCKED`), "$1"}
	planVersion = without(` AND p\.version = d\.version`)
	occurrence  = guard{regexp.MustCompile(`UNIQUE \(job_id, occurrence\)`), "CHECK (1 = 1)"}
)

func twins() []*twin {
	// A decision has read all that it is made from, and begins to write.
	decided := regexp.MustCompile(`^exec (INSERT INTO \S*runs|(WITH d AS .*)?UPDATE .*runs (AS )?r .*SET (r\.)?state = d\.state)`)
	taking := regexp.MustCompile(`^begin|^query .*runs r WHERE`)
	ending := regexp.MustCompile(`^begin|^act|^(query|exec) WITH (d AS .*free|moved) AS|^exec UPDATE .*runs .*SET (r\.)?state = d\.final`)
	ledger := regexp.MustCompile(`plan |twice: |too many: |again`)
	again := regexp.MustCompile(`again|running still|took effect|attempts`)
	moves := []guard{without(` AND r\.state = d\.was`), without(` AND r\.fence = d\.fence`)}
	taken := append(slices.Clone(moves), runLock, without(` AND \(d\.lease IS NULL OR r\.lease_until = d\.lease\)`))
	keyless, twice := []guard{planLock, planVersion, occurrence}, regexp.MustCompile(`twice: `)
	return []*twin{
		{name: "claim", long: "mariadb", engines: "postgres,mariadb", gone: []guard{planLock, planVersion}, kind: frozen, at: decided, shows: ledger},
		// On SQLite the transaction is the lock.
		{name: "claim", long: "sqlite", engines: "sqlite", gone: []guard{planVersion}, bare: true, kind: frozen, at: decided, shows: ledger},
		// A decision is written in one transaction.
		{name: "advance", long: "postgres,mariadb", engines: "sqlite,postgres,mariadb", bare: true, kind: killedAfter, at: decided, shows: ledger},
		// If nothing else stops a second decision, the keys of the first one do.
		{name: "advance: key", long: "mariadb", engines: "sqlite,mariadb", gone: keyless, bare: true, kind: frozen, at: decided, shows: twice},
		{name: "advance: key", long: "postgres", engines: "postgres", gone: append(slices.Clone(keyless), looking), bare: true, kind: frozen, at: decided, shows: twice},
		{name: "take", long: "postgres,mariadb", engines: "sqlite,postgres,mariadb", gone: []guard{without(` AND state( \|\| '')? = 'queued'`)}, kind: frozen, at: taking, shows: again},
		{name: "finish", long: "postgres,mariadb", engines: "sqlite,postgres,mariadb", kind: frozen, at: ending, shows: again, gone: []guard{
			fence, holder,
			{regexp.MustCompile(` AND (r\.)?attempts = (\$\d+|\?\d*)`), " AND (${1}attempts = $2 OR 1 = 1)"},
			without(` AND (CASE WHEN )?(r\.)?state = 'running'( THEN true ELSE false END)?`)}},
		// PostgreSQL has another statement for an end that comes alone, as all ends of this course do.
		// There TestEndsTogether tries the guards.
		{name: "finish: together", long: "mariadb", engines: "sqlite,mariadb", kind: frozen, at: ending, shows: again, gone: []guard{
			without(` AND (r\.)?fence = d\.(fence|value ->> 'fence')`), without(` AND (r\.)?holder = d\.(holder|value ->> 'holder')`),
			without(` AND (r\.)?attempts = d\.(number|value ->> 'number')`),
			without(` AND (CASE WHEN )?(r\.)?state = 'running'( THEN true ELSE false END)?`)}},
		// The runs that a decision changes are locked; their state and fence are the guard where there is no lock.
		{name: "settle", long: "mariadb", engines: "postgres,mariadb", gone: append(slices.Clone(moves), runLock), kind: frozen, at: decided, shows: again},
		{name: "settle", long: "sqlite", engines: "sqlite", gone: moves, bare: true, kind: frozen, at: decided, shows: again},
		// A run that is taken from its holder is locked. It stays with its holder if it has ended or
		// reported in the meantime.
		{name: "recovery", engines: "postgres,mariadb", gone: taken, stages: recovery, kind: returns, at: decided, shows: again},
		{name: "recovery", engines: "sqlite", gone: taken, stages: recovery, bare: true, kind: returns, at: decided, shows: again},
	}
}

// Each guard is needed: without it, the harness finds the problem that the guard prevents.
func TestCrashWithoutEachGuard(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		for _, tw := range twins() {
			if !strings.Contains(tw.engines, storetest.Dialect(e)) || strings.Contains(tw.long, storetest.Dialect(e)) && !prove.Whole() {
				continue
			}
			t.Run(e+"/"+tw.name, func(t *testing.T) {
				t.Parallel()
				stages := stagesOf(e)
				if tw.stages != nil {
					stages = tw.stages()
				}
				w := newWorld(t, e, tw)
				m, err := w.unbroken(stages)
				if err != nil {
					t.Fatal(err)
				}
				if kept := tw.kept(e); len(kept) > 0 {
					t.Fatalf("no statement has these guards, which are therefore still there: %q", kept)
				}
				list := slices.DeleteFunc(m.with(tw.kind), func(c crash) bool {
					call := m.calls[c.stage][c.k-1]
					return !tw.at.MatchString(call.Kind + " " + strings.Join(strings.Fields(call.SQL), " "))
				})
				// Any order finds the problem. In this one, the servers try few crashes before.
				rand.New(rand.NewPCG(18, 0)).Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
				for i, c := range list {
					if violations, _ := w.crash(stages, m, c); tw.shows.MatchString(strings.Join(violations, "\n")) {
						t.Logf("twin without %s: found by crash %d of %d: %s", tw.name, i+1, len(list), strings.Join(violations, "\n  "))
						return
					}
				}
				t.Errorf("%d crashes, and nothing found", len(list))
			})
		}
	}
}
