package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	riverqueue "github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const (
	riverTuned   = "PostgreSQL: River, tuned"
	riverDefault = "PostgreSQL: River, defaults"
	riverChild   = "river" // the first argument of this program if it is the process of River
)

// Insert is the only kind of job: it writes a row.
type Insert struct {
	Job int `json:"job"`
}

// Kind is the name by which River knows it.
func (Insert) Kind() string { return "insert" }

type inserter struct {
	riverqueue.WorkerDefaults[Insert]
	pool *pgxpool.Pool
}

func (w *inserter) Work(ctx context.Context, job *riverqueue.Job[Insert]) error {
	_, err := w.pool.Exec(ctx, "INSERT INTO effects (job) VALUES ($1)", job.Args.Job)
	return err
}

// river adds River's rows.
func river(b *bench, t *table) error {
	d, err := b.fresh("postgres")
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(b.ctx, d.url)
	if err != nil {
		return err
	}
	b.later(pool.Close)
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: silent})
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(b.ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	if err := d.run(b.ctx, "CREATE TABLE effects (job bigint NOT NULL)"); err != nil {
		return err
	}
	client, err := riverqueue.NewClient(riverpgxv5.New(pool), &riverqueue.Config{Logger: silent}) // one that only inserts
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	prepare := func() error {
		if err := d.run(b.ctx, "TRUNCATE river_job", "TRUNCATE effects", "VACUUM ANALYZE river_job"); err != nil {
			return err
		}
		params := make([]riverqueue.InsertManyParams, b.jobs)
		for i := range params {
			params[i].Args = Insert{i}
		}
		if _, err := client.InsertManyFast(b.ctx, params); err != nil {
			return err
		}
		return d.run(b.ctx, "ANALYZE river_job")
	}
	for _, name := range []string{riverTuned, riverDefault} {
		t.add(&contender{name: name, peer: riverTuned, prepare: prepare, run: func() (sample, error) {
			s, err := b.resident(self, riverChild, d.url, strconv.Itoa(b.jobs), strconv.FormatBool(name == riverTuned))
			if n, e := d.int(b.ctx, "SELECT count(DISTINCT job) FROM effects"); err == nil && n != b.jobs {
				err = fmt.Errorf("%d jobs have run: %w", n, e)
			}
			return s, err
		}})
	}
	return nil
}

var silent = slog.New(slog.NewTextHandler(io.Discard, nil))

// runRiver is the process of River. Its arguments are the URL, the number of jobs, and whether it is tuned.
func runRiver(args []string) error {
	ctx := context.Background()
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	pools, err := pgxpool.ParseConfig(args[0])
	if err != nil {
		return err
	}
	config := &riverqueue.Config{Logger: silent, Workers: riverqueue.NewWorkers(),
		Queues: map[string]riverqueue.QueueConfig{riverqueue.QueueDefault: {MaxWorkers: 100}}}
	if args[2] == "true" {
		config.FetchCooldown, config.FetchPollInterval = 2*time.Millisecond, 20*time.Millisecond
		config.Queues[riverqueue.QueueDefault] = riverqueue.QueueConfig{MaxWorkers: 1000}
		pools.MaxConns, pools.MinConns = 16, 16
	}
	pool, err := pgxpool.NewWithConfig(ctx, pools)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := pool.Ping(ctx); err != nil {
		return err
	}
	riverqueue.AddWorker(config.Workers, &inserter{pool: pool})
	client, err := riverqueue.NewClient(riverpgxv5.New(pool), config)
	if err != nil {
		return err
	}
	completed, unsubscribe := client.SubscribeConfig(&riverqueue.SubscribeConfig{
		ChanSize: 2 * n, Kinds: []riverqueue.EventKind{riverqueue.EventKindJobCompleted, riverqueue.EventKindJobFailed}})
	defer unsubscribe()
	if err := awaitGo(); err != nil {
		return err
	}
	if err := client.Start(ctx); err != nil {
		return err
	}
	for range n { // the event of a job comes after its state is committed
		if event := <-completed; event.Kind != riverqueue.EventKindJobCompleted {
			return fmt.Errorf("job %d: %s", event.Job.ID, event.Kind)
		}
	}
	var left int
	if err := pool.QueryRow(ctx, "SELECT count(*) FROM river_job WHERE state <> 'completed'").Scan(&left); err != nil || left > 0 {
		return fmt.Errorf("%d jobs are not on record as completed: %w", left, err)
	}
	fmt.Println("done")
	return client.Stop(ctx)
}
