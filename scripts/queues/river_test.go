package queues

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

var silent = slog.New(slog.NewTextHandler(io.Discard, nil))

func pool(t *testing.T, url string) *pgxpool.Pool {
	p, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func prepareRiver(t *testing.T, url string) {
	migrator, err := rivermigrate.New(riverpgxv5.New(pool(t, url)), &rivermigrate.Config{Logger: silent})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil); err != nil {
		t.Fatal(err)
	}
}

// Report is the job that the recipe inserts.
type Report struct {
	Run string    `json:"run"`
	At  time.Time `json:"at"`
}

// Kind is how River knows it.
func (Report) Kind() string { return "report" }

type reporter struct {
	river.WorkerDefaults[Report]
	pool *pgxpool.Pool
}

func (w *reporter) Work(ctx context.Context, job *river.Job[Report]) error {
	_, err := w.pool.Exec(ctx, "INSERT INTO worked (run, at) VALUES ($1, $2)", job.Args.Run, job.Args.At)
	return err
}

func workRiver(t *testing.T, url string) {
	p := pool(t, url)
	config := &river.Config{Logger: silent, Workers: river.NewWorkers(),
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 50}}}
	river.AddWorker(config.Workers, &reporter{pool: p})
	client, err := river.NewClient(riverpgxv5.New(p), config)
	if err != nil {
		t.Fatal(err)
	}
	ended, unsubscribe := client.Subscribe(river.EventKindJobCompleted, river.EventKindJobFailed)
	defer unsubscribe()
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for left := 1; left > 0; {
		if event := <-ended; event.Kind != river.EventKindJobCompleted {
			t.Fatalf("job %d: %s", event.Job.ID, event.Kind)
		}
		if err := p.QueryRow(t.Context(), "SELECT count(*) FROM river_job WHERE state <> 'completed'").Scan(&left); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}
