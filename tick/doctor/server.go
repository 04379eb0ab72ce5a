package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// setting is a setting of a server that weakens what dbjobs promises, or a sign of something else.
type setting struct {
	check, name, value string
	level              Level
	problem, advice    string
}

const unsafe = "a run may be executed again after a crash of the server, although it was recorded as done"

// settings are looked at on each engine that has them.
var settings = []setting{
	{"standby", "in_hot_standby", "on", Wrong, "this server is a standby: nothing can be decided here", "name the primary server in the URL, of several hosts with ?target_session_attrs=read-write"},
	{"standby", "read_only", "ON", Wrong, "this server takes no writes: read_only is on", "name the server that takes writes in the URL"},
	{"standby", "default_transaction_read_only", "on", Wrong, "this login's transactions write nothing: default_transaction_read_only is on",
		"ALTER ROLE … SET default_transaction_read_only = off; a managed server may have set it because its disk is full"},
	{"standby", "transaction_read_only", "ON", Wrong, "new transactions write nothing: transaction_read_only is on", "SET GLOBAL transaction_read_only = 0"},
	{"standby", "tx_read_only", "ON", Wrong, "new transactions write nothing: tx_read_only is on", "SET GLOBAL tx_read_only = 0"},
	{"durability", "fsync", "off", Note, unsafe + ": fsync = off", "set fsync = on for data that matters"},
	{"durability", "full_page_writes", "off", Note, unsafe + ": full_page_writes = off", "set full_page_writes = on"},
	{"durability", "synchronous_commit", "off", Note, unsafe + ": synchronous_commit = off", "ALTER ROLE … SET synchronous_commit = on, for the login of the ticks"},
	{"durability", "innodb_flush_log_at_trx_commit", "0", Note, unsafe + ": innodb_flush_log_at_trx_commit = 0", "set it to 1"},
	{"durability", "innodb_flush_log_at_trx_commit", "2", Note, unsafe + ": innodb_flush_log_at_trx_commit = 2", "set it to 1"},
	{"durability", "innodb_doublewrite", "OFF", Note, unsafe + ": innodb_doublewrite = OFF", "set it to ON"},
	{"statistics", "innodb_stats_auto_recalc", "OFF", Note, "the statistics of the tables are not renewed: innodb_stats_auto_recalc = OFF", "set it to ON, or run ANALYZE TABLE at times"},
	{"statistics", "autovacuum", "off", Warning, "dead rows stay, and statistics are not renewed: autovacuum = off", "set autovacuum = on"},
}

// large is the number of rows from which a table without statistics is slow.
const large = 10_000

// server looks at the server, its tables and the rights of the login.
func (e *exam) server(ctx context.Context) error {
	v, err := e.s.Server(ctx)
	for _, t := range v.Missing.Tables {
		e.find("tables", Wrong, "", "restore it from a copy of the database; dbjobs migrate does not make it again", "the table %s is missing", t)
	}
	for _, t := range v.NotShown {
		e.find("rights", Warning, "", "grant the rights that dbjobs migrate --print-grants prints; if the login that made the tables does not see it either, it is gone",
			"this login has no right on the table %s, or it is missing: the server does not tell which", t)
	}
	for _, name := range v.Keys {
		e.find("keys", Wrong, "", "where a restore stopped before its end, let dbjobs uninstall drop what is there, and restore again",
			"the key %s is missing: without it, rows may be made twice", name)
	}
	for _, x := range v.Indexes {
		if x.Unique {
			e.find("keys", Wrong, "", x.Make, "the unique index %s is missing: without it, rows may be made twice", x.Name)
		} else {
			e.find("indexes", Warning, "", x.Make, "the index %s is missing", x.Name)
		}
	}
	for _, name := range v.Repeatables {
		e.find("views", Warning, "", "run dbjobs migrate", "%s is missing", name)
	}
	for _, view := range v.OldViews {
		e.find("views", Warning, "", "run dbjobs migrate", "the view %s is that of an older PostgreSQL: it shows rows with the rights of its owner", view)
	}
	for _, view := range v.Unusable {
		e.find("views", Warning, "", "run dbjobs migrate: it makes the views again, with its own login as their definer", "nobody can read the view %s", view)
	}
	for _, b := range v.Behind {
		e.find("sequence", Wrong, "", b.Mend, "no row can be added to %s: its sequence is behind the rows, which have numbers up to %d", b.Table, b.Used)
	}
	for _, name := range v.BrokenIndexes {
		e.find("indexes", Warning, "", "REINDEX INDEX CONCURRENTLY dbjobs."+name, "the index %s is not valid", name)
	}
	if len(v.Denied) > 0 {
		e.find("rights", Note, "", "grant what is missing if ticks use this login; a reader needs SELECT only", "this login may not do all that a tick does: %s", list(v.Denied, 4))
	}
	if len(v.Unwritable) > 0 {
		e.find("rights", Warning, "", "let ticks run as the user to whom the file belongs, or let this user write the file, its folder, and what is beside it with -wal and -shm at the end",
			"passes of this user cannot write: %s", list(v.Unwritable, 4))
	}
	if len(v.Unguarded) > 0 {
		e.find("owners", Wrong, "", "run dbjobs migrate --owners, which makes them again", "rows have owners, but logins may reach rows of others, or not their own, since these are missing: %s", list(v.Unguarded, 4))
	}
	if v.Unbound != "" {
		e.find("rights", Note, "", "let ticks log in as a member of dbjobs_ticker that is none of that: dbjobs migrate --print-grants ticker",
			"rows have owners, and this login %s: no row security binds it, nor a text of a job that is executed with it", v.Unbound)
	}
	for _, s := range settings {
		if strings.EqualFold(v.Settings[s.name], s.value) {
			e.find(s.check, s.level, "", s.advice, "%s", s.problem)
		}
	}
	for _, t := range v.Tables {
		if t.Unknown && t.Rows > large {
			e.find("statistics", Warning, "", "ANALYZE dbjobs."+t.Name, "the table %s has %d rows, and the planner has no statistics of it", t.Name, t.Rows)
		}
		if t.Dead > 10*large && t.Dead > t.Rows {
			e.find("statistics", Warning, "", "VACUUM dbjobs."+t.Name+"; a session that stays in a transaction may hold it up",
				"the table %s has %d dead rows beside %d", t.Name, t.Dead, t.Rows)
		}
	}
	for _, fault := range v.FileFaults {
		e.find("file", Wrong, "", "stop the ticks, keep a copy of the file, and restore the last good one", "the file is damaged: %s", fault)
	}
	if v.FileFree > 64<<20 && v.FileFree > v.FileSize/2 {
		e.find("file", Note, "", "VACUUM gives it back, in a moment without ticks", "%d MB of the file's %d MB hold nothing", v.FileFree>>20, v.FileSize>>20)
	}
	switch {
	case err != nil:
	case len(v.Missing.Tables) > 0:
		err = errors.New("tables are missing: the rest was not examined")
	case len(v.NotShown) > 0:
		err = errors.New("this login does not see all tables: the rest was not examined")
	}
	return err
}

// list joins the first texts of a list, at most "most" of them, and says how many more there are.
func list(all []string, most int) string {
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
}
