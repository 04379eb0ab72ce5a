package main

import (
	"database/sql"
	"os/exec"
	"path/filepath"
	"time"
)

// noop compares a tick that finds nothing due with the part that cannot be saved: connecting and asking.
func noop(b *bench, t *table) error {
	t.unit, t.times = time.Millisecond, 20
	for _, engine := range b.engines {
		j, err := b.seed(engine, jobs{n: 1000})
		if err != nil {
			return err
		}
		title := titles[engine]
		ask := title + ": connect and ask, within a process"
		peer := ask
		if client := clients[engine]; client != nil {
			if argv := client(j.database); onPath(argv[0]) {
				peer = title + ": " + filepath.Base(argv[0]) + ", select 1"
				t.add(&contender{name: peer, run: func() (sample, error) {
					cmd := exec.CommandContext(b.ctx, argv[0], argv[1:]...)
					began := time.Now()
					err := cmd.Run()
					return sample{took: time.Since(began), processor: spent(cmd)}, err
				}})
			} else {
				t.leftOut = append(t.leftOut, argv[0]+", which is not installed")
			}
		}
		t.add(
			&contender{name: title + ": dbjobs tick", peer: peer, run: func() (sample, error) { return b.dbjobs(j.database, "tick") }},
			&contender{name: ask, peer: peer, run: func() (sample, error) {
				began := time.Now()
				err := askOnce(b, j.database)
				return sample{took: time.Since(began)}, err
			}},
		)
	}
	return nil
}

// clients has the client of each engine, with its smallest query. Debian's psql on the path is a script in Perl
// that takes longer than the program that it starts.
var clients = map[string]func(*database) []string{
	"postgres": func(d *database) []string {
		psql := "psql"
		if own, _ := filepath.Glob("/usr/lib/postgresql/*/bin/psql"); len(own) > 0 { // the pattern is well-formed
			psql = own[len(own)-1]
		}
		return []string{psql, d.url, "-c", "select 1"}
	},
	"sqlite": func(d *database) []string { return []string{"sqlite3", d.url[len("sqlite:"):], "select 1"} },
}

func onPath(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

// askOnce opens a new session.
func askOnce(b *bench, d *database) error {
	d.SetMaxIdleConns(0)
	conn, err := d.Conn(b.ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	var one sql.NullInt64
	return conn.QueryRowContext(b.ctx, "SELECT 1").Scan(&one)
}
