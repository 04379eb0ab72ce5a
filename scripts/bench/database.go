package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // database/sql's pgx
	_ "modernc.org/sqlite"             // database/sql's sqlite
)

// variables has the variables in which scripts/testservers names its servers.
var variables = map[string]string{"postgres": "DBJOBS_TEST_POSTGRES", "mariadb": "DBJOBS_TEST_MARIADB", "pgcron": "DBJOBS_TEST_PGCRON"}

var titles = map[string]string{"postgres": "PostgreSQL", "mariadb": "MariaDB", "sqlite": "SQLite"}

// A database is one that only its table uses, and that is dropped after it.
type database struct {
	*sql.DB
	engine string
	name   string
	url    string // as dbjobs and libpq read it
}

// fresh makes an empty database.
func (b *bench) fresh(engine string) (*database, error) {
	if engine == "sqlite" {
		file := filepath.Join(b.dir, rand.Text()+".db")
		b.later(func() {
			for _, end := range []string{"", "-wal", "-shm"} {
				_ = os.Remove(file + end) // b.dir is deleted in any case
			}
		})
		return b.open(engine, "sqlite:"+file)
	}
	server, err := b.named(engine)
	if err != nil {
		return nil, err
	}
	name := "dbjobs_test_bench_" + strings.ToLower(rand.Text()[:10])
	if _, err := server.ExecContext(b.ctx, "CREATE DATABASE "+name); err != nil {
		return nil, err
	}
	b.later(func() {
		force := map[string]string{"postgres": " WITH (FORCE)"}[engine]
		if _, err := server.Exec("DROP DATABASE " + name + force); err != nil { // also after Ctrl-C, when b.ctx has ended
			b.say("the database %s stays: %v", name, err)
		}
	})
	u, err := url.Parse(server.url)
	if err != nil {
		return nil, errors.New("not a URL") // err would show the password
	}
	u.Path = "/" + name
	d, err := b.open(engine, u.String())
	if err != nil {
		return nil, err
	}
	d.name = name
	return d, nil
}

// named is the server of the engine, under the name that its variable gives.
func (b *bench) named(engine string) (*database, error) {
	u := os.Getenv(variables[engine])
	if u == "" {
		return nil, fmt.Errorf("%s is not set: start this by make bench, or by scripts/testservers", variables[engine])
	}
	return b.open(engine, u)
}

func (b *bench) open(engine, of string) (*database, error) {
	driver, dsn := "pgx", of
	switch engine {
	case "sqlite":
		driver, dsn = "sqlite", strings.Replace(of, "sqlite:", "file:", 1)+"?_pragma=busy_timeout(30000)&_txlock=immediate"
	case "mariadb":
		u, err := url.Parse(of)
		if err != nil {
			return nil, errors.New("not a URL") // err would show the password
		}
		c := mysql.NewConfig()
		c.User, c.Net, c.Addr, c.DBName = u.User.Username(), "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
		c.Passwd, _ = u.User.Password()
		c.InterpolateParams, c.ClientFoundRows = true, true
		c.Params = map[string]string{"time_zone": "'+00:00'"}
		driver, dsn = "mysql", c.FormatDSN()
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return nil, err
	}
	b.later(func() { db.Close() })
	return &database{DB: db, engine: engine, url: of}, nil
}

// run sends statements, one after the other.
func (d *database) run(ctx context.Context, statements ...string) error {
	for _, st := range statements {
		if _, err := d.ExecContext(ctx, st); err != nil {
			return fmt.Errorf("%s: %w", st, err)
		}
	}
	return nil
}

func (d *database) int(ctx context.Context, query string) (n int, err error) {
	if err := d.QueryRowContext(ctx, query).Scan(&n); err != nil {
		return 0, fmt.Errorf("%s: %w", query, err)
	}
	return n, nil
}

// table returns the name of one of dbjobs' tables on the engine.
func (d *database) table(name string) string {
	if d.engine == "postgres" {
		return "dbjobs." + name
	}
	return "dbjobs_" + name
}

// instant returns t in the form of the engine's tables.
func (d *database) instant(t time.Time) string {
	layout := map[string]string{
		"postgres": "2006-01-02T15:04:05Z", "mariadb": "2006-01-02 15:04:05", "sqlite": "2006-01-02T15:04:05.000000Z",
	}[d.engine]
	return "'" + t.UTC().Format(layout) + "'"
}

// versions returns the versions of all programs that were measured.
func (b *bench) versions() []string {
	var all []string
	for _, engine := range b.engines {
		if engine == "sqlite" {
			continue
		}
		d, err := b.named(engine)
		if err != nil {
			continue
		}
		var version string
		if d.QueryRowContext(b.ctx, "SELECT version()").Scan(&version) == nil {
			if engine == "mariadb" {
				version = "MariaDB " + version
			}
			all = append(all, strings.Join(strings.Fields(version)[:2], " "))
		}
	}
	b.close()
	if info, ok := debug.ReadBuildInfo(); ok {
		all = append(all, info.GoVersion)
		for _, m := range info.Deps {
			for _, path := range []string{"github.com/riverqueue/river", "modernc.org/sqlite"} {
				if m.Path == path {
					all = append(all, filepath.Base(path)+" "+m.Version)
				}
			}
		}
	}
	if b.graphile != "" {
		all = append(all, "graphile-worker "+graphileVersion)
	}
	return all
}
