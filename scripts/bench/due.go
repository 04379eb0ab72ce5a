package main

import "fmt"

// due executes jobs that are due at one instant, by the program and by its peers.
func due(b *bench, t *table) error {
	t.title = fmt.Sprintf("%d %s", b.jobs, t.title)
	for _, engine := range b.engines {
		title := titles[engine]
		peer := map[string]string{"postgres": riverTuned, "mariadb": eventsName, "sqlite": "PostgreSQL: dbjobs tick"}[engine]
		plain, err := b.seed(engine, jobs{n: b.jobs})
		if err != nil {
			return err
		}
		atomic, err := b.seed(engine, jobs{n: b.jobs, more: ", atomic: true"})
		if err != nil {
			return err
		}
		t.add(plain.whole(b, title+": dbjobs tick", peer, "tick"),
			atomic.whole(b, title+": dbjobs tick, atomic steps", title+": dbjobs tick", "tick"))
		if engine == "postgres" {
			byHand(b, t, plain)
		}
		for _, add := range peers[engine] {
			if err := add(b, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// peers has the other programs that execute due jobs, by the engine that they need.
var peers = map[string][]func(*bench, *table) error{
	"postgres": {river, graphile, pgCron},
	"mariadb":  {events},
}
