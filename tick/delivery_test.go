package tick_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A run whose holder died is delivered again when its lease is over, and the late end is refused.
func TestDeliveryAgainWhenAHolderDied(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", MaxDeliveries: 2, Steps: []store.Step{ticktest.Nop("")}}}})
		ticktest.RunNow(t, d, "job", store.Request{})
		ticktest.DecideOnly(t, d)
		dead := store.Holder{Name: "dead", Lease: time.Minute}
		late, err := d.Take(t.Context(), "tick", 1, dead)
		if err != nil || len(late) != 1 {
			t.Fatal(err, late)
		}
		d.Clock.Add(time.Minute)
		if r := ticktest.Run(t, d); r.Started != 0 {
			t.Fatalf("overtaken within a heartbeat: %+v", r)
		}
		d.Clock.Add(time.Minute)
		if r := ticktest.Run(t, d); r.Succeeded != 1 {
			t.Fatalf("%+v", r)
		}
		err = d.EndStep(t.Context(), &late[0], store.StepEnd{State: store.Succeeded, Final: store.Succeeded}, dead)
		if !errors.Is(err, store.ErrOutdated) {
			t.Fatalf("the late end: %v", err)
		}
		detail, err := d.Run(t.Context(), late[0].Run.ID)
		if err != nil || len(detail.Tries) != 2 || detail.Tries[0].State != store.Lost || detail.Losses != 1 || detail.Fence != 2 {
			t.Fatalf("%v: %+v", err, detail)
		}
		if detail.Tries[1].Attempt != 1 {
			t.Errorf("the delivery that did not come back counts as an attempt: %+v", detail.Tries)
		}
	})
}

// A delivery that is cut short uses up a delivery, and no attempt of the step.
func TestDeliveryCutShortUsesUpNoAttempt(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Nop("")}}}})
		ticktest.Request(t, d, "job")
		h := store.Holder{Name: "h", Lease: time.Minute}
		for losses := range 2 {
			ticktest.DecideOnly(t, d)
			tasks, err := d.Take(t.Context(), "tick", 1, h)
			if err != nil || len(tasks) != 1 {
				t.Fatal(err, len(tasks))
			}
			if r := tasks[0].Run; r.Attempt != 1 || r.Attempts != losses+1 || r.Losses != losses {
				t.Errorf("delivery %d: attempt %d, %d in all, %d losses", losses+1, r.Attempt, r.Attempts, r.Losses)
			}
			if err := d.EndStep(t.Context(), &tasks[0], store.StepEnd{State: "cut", Redeliver: true}, h); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A holder dies in a later step. Only the attempt that it had is lost: those that have ended keep their ends.
func TestDeliveryLostInALaterStep(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Nop("one"), ticktest.Nop("two")}}}})
		ticktest.Request(t, d, "job")
		ticktest.DecideOnly(t, d)
		dead := store.Holder{Name: "dead", Lease: time.Minute}
		tasks, err := d.Take(t.Context(), "tick", 1, dead)
		if err != nil || len(tasks) != 1 {
			t.Fatal(err, len(tasks))
		}
		if err := d.EndStep(t.Context(), &tasks[0], store.StepEnd{State: store.Succeeded, NextStep: 2}, dead); err != nil {
			t.Fatal(err)
		}
		d.Clock.Add(10 * time.Minute)
		ticktest.Run(t, d)
		run, err := d.Run(t.Context(), tasks[0].Run.ID)
		var got []string
		for _, a := range run.Tries {
			got = append(got, a.StepName+" "+a.State)
		}
		if want := []string{"one succeeded", "two lost", "two succeeded"}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	})
}

// On SQLite, a holder that lives keeps its run however long it takes.
func TestDeliveryAgainNotWhileAHolderLives(t *testing.T) {
	d := storetest.Open(t, "sqlite", store.Options{})
	ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Nop("")}}}})
	ticktest.RunNow(t, d, "job", store.Request{})
	ticktest.DecideOnly(t, d)
	busy := store.Holder{Name: "busy", Lease: time.Minute}
	release, err := d.Hold(busy)
	if err != nil {
		t.Fatal(err)
	}
	if tasks, err := d.Take(t.Context(), "tick", 1, busy); err != nil || len(tasks) != 1 {
		t.Fatal(err, tasks)
	}
	d.Clock.Add(time.Hour)
	if r := ticktest.Run(t, d); r.Started != 0 {
		t.Fatalf("taken from a living holder: %+v", r)
	}
	release()
	if r := ticktest.Run(t, d); r.Succeeded != 1 {
		t.Fatalf("not taken from a dead one: %+v", r)
	}
}

// A run with one delivery that is cut short is lost, and not executed again.
func TestDeliveryOnceExecutesOnce(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", MaxDeliveries: 1, Steps: []store.Step{ticktest.Call("")}}}})
		ticktest.Request(t, d, "job")
		executed := 0
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			_, err := ticktest.NewDoing(t, d, func(ctx context.Context, _ executor.Request) (executor.Result, error) {
				executed++
				cancel()
				<-ctx.Done()
				return executor.Result{}, ctx.Err()
			}).Run(ctx)
			cancel()
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			d.Clock.Add(5 * time.Minute)
		}
		if got := ticktest.States(t, d, "job"); executed != 1 || !slices.Equal(got, []string{store.Lost}) {
			t.Fatalf("executed %d times: %v", executed, got)
		}
	})
}

// The pass ends before a step has done anything: the step waits for a connection, or another step has just ended. A run with one
// delivery is then delivered again.
func TestDeliveryOnceThatHasDoneNothing(t *testing.T) {
	for name, c := range map[string]struct {
		first error // of step one, during which the pass ends
		want  string
	}{"waits": {executor.ErrNothingDone, "one one two"}, "between steps": {nil, "one two"}} {
		t.Run(name, func(t *testing.T) {
			storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", MaxDeliveries: 1, Steps: []store.Step{ticktest.Call("one"), ticktest.Call("two")}}}})
				ticktest.Request(t, d, "job")
				var executed []string
				for range 2 {
					ctx, cancel := context.WithCancel(t.Context())
					_, err := ticktest.NewDoing(t, d, func(within context.Context, r executor.Request) (executor.Result, error) {
						executed = append(executed, r.Task.StepAt(r.Task.Run.Step).Name)
						if len(executed) > 1 {
							return executor.Result{}, nil
						}
						cancel()
						<-within.Done()
						return executor.Result{}, c.first
					}).Run(ctx)
					cancel()
					if err != nil && !errors.Is(err, context.Canceled) {
						t.Fatal(err)
					}
					d.Clock.Add(5 * time.Minute)
				}
				if got := ticktest.LastRun(t, d, "job"); got.State != store.Succeeded || strings.Join(executed, " ") != c.want {
					t.Errorf("executed %q: %s: %s", executed, got.State, got.Error)
				}
			})
		})
	}
}

// The end of a run comes after its lease, when another pass has taken its process for dead. The message says what has become of
// the run: with one delivery it is lost, and nobody has executed it again.
func TestDeliveryThatIsOverSaysWhatTheRunIs(t *testing.T) {
	for deliveries, now := range map[int]string{1: store.Lost, 3: store.Queued} {
		t.Run(now, func(t *testing.T) {
			ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", MaxDeliveries: deliveries, Steps: []store.Step{ticktest.Call("one")}}}})
				ticktest.Request(t, d, "job")
				tk := ticktest.NewDoing(t, d, func(context.Context, executor.Request) (executor.Result, error) {
					d.Clock.Add(10 * time.Minute)
					ticktest.DecideOnly(t, d)
					return executor.Result{}, nil
				})
				var log strings.Builder
				tk.Log = slog.New(slog.NewTextHandler(&log, nil))
				tk.Limit = 1
				if r, err := tk.Run(t.Context()); err != nil || r.Outdated != 1 {
					t.Fatalf("%v: %+v", err, r)
				}
				if !strings.Contains(log.String(), "no longer holds it") || !strings.Contains(log.String(), "now="+now) {
					t.Errorf("%d deliveries: %s", deliveries, log.String())
				}
			})
		})
	}
}

// A holder reports just after a decision has read that its lease is over. The holder keeps the run, whatever the
// decision wanted to do with it, and whether or not somebody wants it cancelled.
func TestDeliveryAgainNotBesideAHeartbeat(t *testing.T) {
	for name, c := range map[string]struct {
		deliveries int
		cancel     bool
	}{"cancelled": {3, true}, "delivered again": {3, false}, "lost": {1, false}} {
		t.Run(name, func(t *testing.T) {
			ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Queue: "others", MaxDeliveries: c.deliveries, Steps: []store.Step{ticktest.Nop("")}}}})
				ticktest.Request(t, d, "job")
				ticktest.DecideOnly(t, d)
				h := store.Holder{Name: "worker", Lease: time.Minute}
				tasks, err := d.Take(t.Context(), "others", 1, h)
				if err != nil || len(tasks) != 1 {
					t.Fatal(err, tasks)
				}
				id := tasks[0].Run.ID
				if c.cancel {
					if _, err := d.CancelRun(t.Context(), id, store.Author{}); err != nil {
						t.Fatal(err)
					}
				}
				d.Clock.Add(10 * time.Minute)
				met := false
				var calls storetest.Calls
				calls.Before = func(call storetest.Call) error {
					if !met && strings.HasPrefix(call.SQL, "SELECT id FROM "+d.Table("runs")+" WHERE") && strings.HasSuffix(call.SQL, "ORDER BY id FOR UPDATE SKIP LOCKED") {
						met = true
						if signs, err := d.Heartbeat(t.Context(), []string{id}, h); err != nil || len(signs) != 1 {
							t.Errorf("heartbeat: %v, %v", signs, err)
						}
					}
					return nil
				}
				tk := ticktest.New(t, ticktest.OpenBeside(t, d, "", store.Options{Wrap: calls.Wrap}))
				if _, err := tk.Run(t.Context()); err != nil || !met {
					t.Fatal(err, met)
				}
				if r, err := d.Run(t.Context(), id); err != nil || r.State != store.Running || r.Losses != 0 {
					t.Errorf("%v: it is %s, with %d losses: %s", err, r.State, r.Losses, r.Error)
				}
				if err := d.EndStep(t.Context(), &tasks[0], store.StepEnd{State: store.Succeeded, Final: store.Succeeded}, h); err != nil {
					t.Errorf("the end of it: %v", err)
				}
			})
		})
	}
}

// The steps commit with their ends, and the answers to COMMIT are lost.
func TestDeliveryGoesOnAfterAnUnansweredCommit(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Call("one"), ticktest.Call("two"), ticktest.Call("three")}}}})
		ticktest.Request(t, d, "job")
		var executed []int
		r, err := ticktest.NewDoing(t, d, func(ctx context.Context, r executor.Request) (executor.Result, error) {
			executed = append(executed, r.Task.Run.Step)
			tx, err := d.SQL.BeginTx(ctx, nil)
			if err != nil {
				return executor.Result{}, err
			}
			defer func() { _ = tx.Rollback() }()
			if err := r.EndIn(ctx, tx, executor.Result{}); err != nil {
				return executor.Result{}, err
			}
			if err := tx.Commit(); err != nil {
				return executor.Result{}, err
			}
			return executor.Result{}, errors.New("unexpected EOF")
		}).Run(t.Context())
		if err != nil || r.Succeeded != 1 || r.Outdated != 0 || !slices.Equal(executed, []int{1, 2, 3}) {
			t.Fatalf("%v: steps %v: %+v", err, executed, r)
		}
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("attempts")+" WHERE state = 'succeeded'"); n != 3 {
			t.Errorf("%d attempts succeeded", n)
		}
	})
}

// A standby that lacks the COMMIT of a take has the run in its queue. Another process takes it there, under the same fence.
func TestDeliveryOfAnotherHolderGoesOnWithoutThisOne(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Call("one"), ticktest.Call("two")}}}})
		ticktest.Request(t, d, "job")
		var executed []int
		r, err := ticktest.NewDoing(t, d, func(_ context.Context, r executor.Request) (executor.Result, error) {
			executed = append(executed, r.Task.Run.Step)
			d.Exec(t, "UPDATE "+d.Table("runs")+" SET holder = 'another', step = 2, attempts = attempts + 1")
			return executor.Result{}, nil
		}).Run(t.Context())
		if err != nil || r.Outdated != 1 || !slices.Equal(executed, []int{1}) {
			t.Fatalf("%v: steps %v: %+v", err, executed, r)
		}
	})
}

// An end that is recorded twice counts once: the second one is refused, and does not touch the step that came after.
func TestDeliveryEndsOnce(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Queue: "others", Steps: []store.Step{ticktest.Call("one"), ticktest.Call("two")}}}})
		ticktest.Request(t, d, "job")
		ticktest.Run(t, d)
		h := store.Holder{Name: "another", Lease: time.Minute}
		tasks, err := d.Take(t.Context(), "others", 1, h)
		if err != nil || len(tasks) != 1 {
			t.Fatal(err, tasks)
		}
		unanswered := tasks[0]
		if err := d.EndStep(t.Context(), &tasks[0], store.StepEnd{State: store.Succeeded, NextStep: 2}, h); err != nil {
			t.Fatal(err)
		}
		for _, end := range []store.StepEnd{
			{State: store.Succeeded, NextStep: 2},
			{State: store.Failed, Final: store.Failed},
			{State: store.Failed, Retry: true, Backoff: time.Minute},
			{State: "cut", Redeliver: true},
		} {
			again := unanswered
			if err := d.EndStep(t.Context(), &again, end, h); !errors.Is(err, store.ErrOutdated) {
				t.Fatalf("%+v: %v", end, err)
			}
		}
		detail, err := d.Run(t.Context(), unanswered.Run.ID)
		if err != nil || detail.State != store.Running || detail.Step != 2 || len(detail.Tries) != 2 {
			t.Fatalf("%v: %+v", err, detail)
		}
	})
}

// A run that makes progress in each pass is never lost, however many passes cut it short. A run that makes none is.
func TestDeliveryLostOnlyWithoutProgress(t *testing.T) {
	for name, c := range map[string]struct{ stuck, state string }{"progress": {"", store.Succeeded}, "no progress": {"d", store.Lost}} {
		t.Run(name, func(t *testing.T) {
			storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", MaxDeliveries: 2,
					Steps: []store.Step{ticktest.Call("a"), ticktest.Call("b"), ticktest.Call("c"), ticktest.Call("d"), ticktest.Call("e")}}}})
				ticktest.Request(t, d, "job")
				executed := ""
				for range 6 { // each pass has time for one step, and is over during the next
					ctx, cancel := context.WithCancel(t.Context())
					ended := 0
					_, err := ticktest.NewDoing(t, d, func(within context.Context, r executor.Request) (executor.Result, error) {
						step := r.Task.StepAt(r.Task.Run.Step).Name
						executed += step
						if ended++; ended == 1 && step != c.stuck {
							return executor.Result{}, nil
						}
						cancel()
						<-within.Done()
						return executor.Result{}, within.Err()
					}).Run(ctx)
					cancel()
					if err != nil && !errors.Is(err, context.Canceled) {
						t.Fatal(err)
					}
				}
				if got := ticktest.States(t, d, "job"); !slices.Equal(got, []string{c.state}) {
					t.Errorf("executed %s: %v", executed, got)
				}
			})
		})
	}
}

// Somebody who sets the losses of a run below zero gives it more deliveries. An attempt that has done nothing is delivered again, after
// the shortest wait, and is no loss.
func TestDeliveryWithLossesBelowZero(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ids := queued(t, d, 1)
		d.Exec(t, "UPDATE "+d.Table("runs")+" SET losses = -5")
		tk := ticktest.NewDoing(t, d, func(context.Context, executor.Request) (executor.Result, error) {
			return executor.Result{}, executor.ErrNothingDone
		})
		if _, err := tk.Work(t.Context()); err != nil {
			t.Fatal(err)
		}
		r, err := d.Run(t.Context(), ids[0])
		if err != nil || r.State != store.Waiting || r.Losses != -5 || r.ReadyAt.Sub(d.Clock.Now()).Round(time.Second) != time.Second {
			t.Errorf("%v: %s after %d losses, ready at %s: %s", err, r.State, r.Losses, r.ReadyAt, r.Error)
		}
	})
}
