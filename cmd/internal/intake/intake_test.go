package intake

import (
	"fmt"
	"math/rand"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// A name that is taken gets the lowest number that is free, however many names there are, and the number is not counted up
// anew for each.
func TestNumbersOfNames(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	l, taken := newNames(), map[string]bool{}
	for i := range 2000 {
		name := []string{"a", "b", "a-2", "a-3-2", "", "job", "job-7", "b-1"}[rnd.Intn(8)]
		want := name
		if want == "" {
			want = "job"
		}
		for n, first := 2, want; taken[want]; n++ {
			want = fmt.Sprintf("%s-%d", first, n)
		}
		if got := l.unique(name); got != want {
			t.Fatalf("%d. name: %q became %q, want %q", i, name, got, want)
		}
		if rnd.Intn(3) > 0 { // otherwise the job is left out, and its name stays free
			l.taken[want], taken[want] = true, true
		}
	}
	l = newNames()
	const many = 20_000
	for range many {
		l.taken[l.unique("x")] = true
	}
	if n := testing.AllocsPerRun(1, func() { l.unique("x") }); n > 10 {
		t.Errorf("a number after %d takes %v allocations", many, n)
	}
}

// A schedule is written if its job is imported.
func TestSchedulesOfLeftOutJobs(t *testing.T) {
	r := &Result{Zone: "UTC"}
	for i := range 10 {
		name := "x"
		if i%3 == 0 {
			name = "/" // no name of a job
		}
		j := &store.Job{Name: name, Schedules: []string{name + " 1"}, Steps: []store.Step{Program("shell", executor.ProgramSpec{Run: []string{"true"}})}}
		r.Items = append(r.Items, Item{Definition: j})
		r.Schedules = append(r.Schedules, store.Schedule{Name: name + " 1", Rule: fmt.Sprintf("%d 0 * * *", i), Zone: "UTC"})
	}
	r.Finish(time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC), "")
	var got []string
	for _, s := range r.used() {
		got = append(got, s.Name+": "+s.Rule)
	}
	want := "[x 1: 1 0 * * * x-2 1: 2 0 * * * x-3 1: 4 0 * * * x-4 1: 5 0 * * * x-5 1: 7 0 * * * x-6 1: 8 0 * * *]"
	if fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
