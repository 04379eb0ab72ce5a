package tick_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/decide"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A job gets a start while the clock is ahead. Its first time counts from the correction, whether a pass has planned it or not, and
// whether somebody has edited it since or not. The job is as old as before.
func TestReplanOfAStartThatWasGivenAhead(t *testing.T) {
	for _, since := range []string{"nothing", "planned", "edited"} {
		t.Run("since "+since, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				apply := func(start, description string) {
					t.Helper()
					j := fiveMinutely("job")
					j.Start, j.Description = start, description
					if _, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{j}}, store.ApplyOptions{Start: decide.Start}); err != nil {
						t.Fatal(err)
					}
				}
				apply("", "")
				made := jobOf(t, d, "job").CreatedAt
				d.Clock.Add(time.Minute)
				ticktest.DecideOnly(t, d)
				right := d.Clock.Now()
				d.Clock.Set(right.AddDate(1, 0, 0))
				apply("daily at 08:30", "")
				d.Clock.Set(right.Add(time.Minute))
				switch since {
				case "planned":
					ticktest.DecideOnly(t, d)
				case "edited":
					apply("daily at 08:30", "another one")
				}
				for _, want := range []int{1, 0} {
					if n, err := d.Replan(t.Context(), "", decide.Start, store.Author{}); err != nil || n.Jobs != want {
						t.Fatalf("%+v, %v; want %d", n, err, want)
					}
				}
				if is := jobOf(t, d, "job").CreatedAt; !is.Equal(made) {
					t.Errorf("it was created at %v, and not at %v", is, made)
				}
				for _, want := range []int{0, 1} {
					for range 3 {
						ticktest.Run(t, d)
						d.Clock.Add(7 * time.Minute)
					}
					if got := ticktest.States(t, d, "job"); min(len(got), 1) != want {
						t.Errorf("before %v: %v", d.Clock.Now(), got)
					}
				}
			})
		})
	}
}

// A start that is still far away after the correction is resolved once, and the job does not count as one that sleeps.
func TestReplanOfAStartThatIsFarAway(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		right := d.Clock.Now()
		d.Clock.Set(right.AddDate(1, 0, 0))
		ticktest.DecideOnly(t, d)
		j := fiveMinutely("job")
		j.Start = "0 12 1 3 *"
		if _, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{j}}, store.ApplyOptions{Start: decide.Start}); err != nil {
			t.Fatal(err)
		}
		d.Clock.Set(right)
		if r := ticktest.Run(t, d); r.Ahead != 1 {
			t.Errorf("%d jobs sleep", r.Ahead)
		}
		for _, want := range []int{1, 0} {
			if n, err := d.Replan(t.Context(), "", decide.Start, store.Author{}); err != nil || n.Jobs != want {
				t.Fatalf("%+v, %v; want %d", n, err, want)
			}
		}
		if r := ticktest.Run(t, d); r.Ahead != 0 {
			t.Errorf("%d jobs sleep", r.Ahead)
		}
		d.Clock.Set(right.AddDate(0, 2, 0))
		if r := ticktest.Run(t, d); r.Succeeded != 1 {
			t.Errorf("%+v", r)
		}
	})
}

// A start that cannot be resolved, since plain SQL has written it, parks its own job. The others are planned anew.
func TestReplanOfAStartThatIsNone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		right := d.Clock.Now()
		d.Clock.Set(right.AddDate(1, 0, 0))
		var defs store.Definitions
		for _, name := range []string{"bad", "good"} {
			j := fiveMinutely(name)
			j.Start = "daily at 08:30"
			defs.Jobs = append(defs.Jobs, j)
		}
		if _, err := d.Apply(t.Context(), defs, store.ApplyOptions{Start: decide.Start}); err != nil {
			t.Fatal(err)
		}
		ticktest.DecideOnly(t, d)
		d.Exec(t, "UPDATE "+d.Table("jobs")+" SET start_rule = 'dialy at 8' WHERE name = 'bad'")
		d.Clock.Set(right)
		for _, want := range []int{2, 0} {
			if n, err := d.Replan(t.Context(), "", decide.Start, store.Author{}); err != nil || n.Jobs != want {
				t.Fatalf("%+v, %v; want %d", n, err, want)
			}
		}
		ticktest.Run(t, d)
		if j := jobOf(t, d, "bad"); j.State != store.JobParked || !strings.Contains(j.Parked, "dialy at 8") {
			t.Errorf("it is %s: %s", j.State, j.Parked)
		}
		d.Clock.Add(time.Hour)
		ticktest.Run(t, d)
		if got := ticktest.States(t, d, "good"); len(got) == 0 {
			t.Errorf("the other job sleeps: %+v", jobOf(t, d, "good"))
		}
	})
}

// A start that the right clock has resolved stays as it is, also where the job was edited while the clock was ahead, or had another
// start by that clock before. The job waits on purpose, and does not count as one that sleeps.
func TestReplanLeavesAStartOfTheRightClock(t *testing.T) {
	for _, what := range []string{"edited ahead", "edited ahead by a routine", "given another one ahead"} {
		t.Run(what, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				apply := func(start string, timeout time.Duration) {
					t.Helper()
					j := fiveMinutely("job")
					j.Start, j.Timeout = start, store.Duration(timeout)
					if _, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{j}}, store.ApplyOptions{Start: decide.Start}); err != nil {
						t.Fatal(err)
					}
				}
				const fortnightly = "I 14 0:00" // counts from the instant after which it is resolved
				apply(fortnightly, 0)
				ticktest.DecideOnly(t, d)
				right := d.Clock.Now()
				d.Clock.Set(right.AddDate(0, 0, 1))
				ticktest.DecideOnly(t, d)
				switch what {
				case "edited ahead":
					apply(fortnightly, time.Hour)
				case "edited ahead by a routine":
					routine := map[string]string{"postgres": `SELECT dbjobs.alter_job('job', '{"priority": 3}')`, "mariadb": `CALL dbjobs_alter_job('job', '{"priority": 3}', NULL)`}[storetest.Dialect(d.Engine)]
					if routine == "" {
						t.Skip("SQLite has no routines")
					}
					d.Exec(t, routine)
					d.Exec(t, "UPDATE "+d.Table("changes")+" SET changed_at = '"+right.AddDate(0, 0, 1).Format("2006-01-02 15:04:05")+"' WHERE action = 'change'")
				default:
					apply("daily at 12:00", 0)
				}
				d.Clock.Set(right.Add(time.Minute))
				if what == "given another one ahead" {
					apply(fortnightly, 0)
				}
				want := jobOf(t, d, "job").NotBefore
				d.Clock.Add(time.Minute)
				if r := ticktest.Run(t, d); r.Ahead != 0 {
					t.Errorf("%d jobs sleep", r.Ahead)
				}
				d.Clock.Set(right.Add(20 * time.Hour)) // on the next day, the start would be another one
				if n, err := d.Replan(t.Context(), "", decide.Start, store.Author{}); err != nil || n.Jobs != 0 {
					t.Errorf("%+v, %v; want none", n, err)
				}
				if is := jobOf(t, d, "job").NotBefore; !is.Equal(want) {
					t.Errorf("it starts at %v, and not at %v", is, want)
				}
			})
		})
	}
}

// The change log says how a replan has moved a start.
func TestReplanOfAStartIsOnRecord(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		right := d.Clock.Now()
		d.Clock.Set(right.AddDate(1, 0, 0))
		j := fiveMinutely("job")
		j.Start = "daily at 08:30"
		if _, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{j}}, store.ApplyOptions{Start: decide.Start}); err != nil {
			t.Fatal(err)
		}
		was := jobOf(t, d, "job").NotBefore
		d.Clock.Set(right)
		if n, err := d.Replan(t.Context(), "", decide.Start, store.Author{By: "ada"}); err != nil || n.Jobs != 1 {
			t.Fatalf("%+v, %v", n, err)
		}
		list, err := d.JobHistory(t.Context(), "job", 10)
		if err != nil || len(list) != 2 || list[0].Action != "replan" || len(list[0].Fields) != 1 {
			t.Fatalf("%v: %+v", err, list)
		}
		f := list[0].Fields[0]
		if is := jobOf(t, d, "job").NotBefore; f.Field != "not_before" || f.Before != was.Format(time.RFC3339) || f.After != is.Format(time.RFC3339) {
			t.Errorf("%+v; want %v and %v", f, was, is)
		}
	})
}

func jobOf(t *testing.T, d *storetest.DB, name string) store.JobStatus {
	t.Helper()
	j, err := d.Job(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return j
}
