package main

import (
	_ "embed" // worker.mjs
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

const graphileVersion = "0.17.3" // the newest that runs on Node 20

//go:embed graphile.mjs
var graphileScript []byte

// graphile adds the row of graphile-worker, if there is npm to fetch it.
func graphile(b *bench, t *table) error {
	if err := b.fetchGraphile(); err != nil {
		t.leftOut = append(t.leftOut, "graphile-worker: "+err.Error())
		return nil
	}
	d, err := b.fresh("postgres")
	if err != nil {
		return err
	}
	if err := d.run(b.ctx, "CREATE TABLE effects (job bigint NOT NULL)"); err != nil {
		return err
	}
	node := func(what string) []string {
		return []string{"node", filepath.Join(b.graphile, "bench.mjs"), what, d.url, strconv.Itoa(b.jobs)}
	}
	t.add(&contender{name: "PostgreSQL: graphile-worker", peer: riverTuned,
		prepare: func() error {
			argv := node("fill")
			if out, err := exec.CommandContext(b.ctx, argv[0], argv[1:]...).CombinedOutput(); err != nil {
				return fmt.Errorf("%w\n%s", err, out)
			}
			return d.run(b.ctx, "TRUNCATE effects", "ANALYZE graphile_worker._private_jobs")
		},
		run: func() (sample, error) {
			s, err := b.resident(node("run")...)
			if n, e := d.int(b.ctx, "SELECT count(DISTINCT job) FROM effects"); err == nil && n != b.jobs {
				err = fmt.Errorf("%d jobs have run: %w", n, e)
			}
			return s, err
		}})
	return nil
}

// fetchGraphile fetches graphile-worker into the cache, once.
func (b *bench) fetchGraphile() error {
	for _, tool := range []string{"node", "npm"} {
		if !onPath(tool) {
			return errors.New("there is no " + tool)
		}
	}
	dir, err := filepath.Abs(filepath.Join(b.cache, "graphile-worker-"+graphileVersion))
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "graphile-worker", "package.json")); err != nil {
		b.say("graphile-worker %s is fetched", graphileVersion)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		install := exec.CommandContext(b.ctx, "npm", "install", "--silent", "--no-save", "--no-package-lock", "--no-audit", "--no-fund",
			"--prefix", dir, "graphile-worker@"+graphileVersion)
		if out, err := install.CombinedOutput(); err != nil {
			return fmt.Errorf("npm does not fetch it: %w %s", err, out)
		}
	}
	b.graphile = dir
	return os.WriteFile(filepath.Join(dir, "bench.mjs"), graphileScript, 0o644)
}
