package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"slices"
	"strings"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// ErrNoLogins says that the engine has no logins, and therefore neither rights nor owners.
var ErrNoLogins = errors.New("SQLite has no logins: who may write the file may do everything; give each owner a file and a user of the system")

// Ownership returns the statements that make rows belong to logins. With on false, rows belong to nobody again.
func (e *Engine) Ownership(on bool) ([]string, error) {
	name := map[bool]string{true: "on", false: "off"}[on]
	text, err := files.ReadFile("sql/" + e.Name + "/owners/" + name + ".sql")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoLogins
	} else if err != nil {
		return nil, err
	}
	return statementsOf(string(text)), nil
}

// guard matches a statement of Ownership that keeps rows from other logins.
var guard = lazyregexp.New(`(?m)^(?:ALTER TABLE (\S+) ENABLE ROW LEVEL SECURITY|CREATE (POLICY|TRIGGER) (\w+) .*?\bON (\S+))`)

// Guards returns the names of what keeps rows from other logins: row security, policies and triggers. MySQL and MariaDB have
// none: there, logins have no rights on tables.
func (e *Engine) Guards() (names []string, err error) {
	list, err := e.Ownership(true)
	if errors.Is(err, ErrNoLogins) {
		return nil, nil
	}
	for _, st := range list {
		for _, f := range guard.FindAllStringSubmatch(st, -1) {
			if f[1] != "" {
				names = append(names, "row security of "+f[1])
			} else {
				names = append(names, strings.ToLower(f[2])+" "+f[3]+" of "+f[4])
			}
		}
	}
	return names, err
}

// Own runs the statements of Ownership.
func (db *DB) Own(ctx context.Context, tx *Tx, on bool) error {
	list, err := db.e.Ownership(on)
	if err != nil {
		return err
	}
	for _, st := range list {
		if _, err := tx.q.ExecContext(ctx, st); err != nil {
			return db.Wrap("set owners: "+firstLine(st), err)
		}
	}
	return nil
}

// LoginKinds are the kinds of logins that Grants knows. admin migrates. ticker does everything else,
// for all owners. reader only reads. user has jobs of its own in an installation with owners.
var LoginKinds = []string{"admin", "ticker", "reader", "user"}

// Grants returns the statements that give a login the least rights of its kind on the database of the
// URL. An administrator runs them. owners adds the statements that an installation with owners needs.
func (all *Statements) Grants(kind, rawURL, login string, owners bool) (string, error) {
	e, texts := all.e, map[string]string{}
	err := readStatements("sql/"+e.Name+"/grants.sql", texts)
	if errors.Is(err, fs.ErrNotExist) {
		return "", ErrNoLogins
	} else if err != nil {
		return "", err
	}
	text := texts[kind]
	if !slices.Contains(LoginKinds, kind) {
		return "", fmt.Errorf("there is no kind of login %.40q; want one of %s", kind, strings.Join(LoginKinds, ", "))
	}
	parts := []string{text}
	if more := texts[kind+"_owners"]; owners && more != "" {
		parts = append(parts, more)
	}
	if login == "" {
		login = "LOGIN"
	}
	database := databaseOf(rawURL)
	if database == "" {
		database = "DATABASE"
	}
	put := strings.NewReplacer("@login", e.quoteLogin(login), "@database", e.quoteName(database),
		"@pattern", e.quoteName(strings.NewReplacer(`_`, `\_`, `%`, `\%`).Replace(database)))
	return all.repeated(put, strings.Join(parts, "\n\n"))
}

// repeated writes the lines of a text, with the names put in. A line with @table is written for each
// table, and @columns in it are the columns that the engine does not number. A line with @tables gets
// the names of all tables. A line with @view or @routine is written for each of these.
func (all *Statements) repeated(put *strings.Replacer, text string) (string, error) {
	made, err := all.e.schema()
	if err != nil {
		return "", err
	}
	var names []string
	columns := map[string]string{}
	for _, t := range made.tables {
		if !strings.HasSuffix(t.name, "installation") {
			names = append(names, t.name)
			columns[t.name] = strings.Join(t.columns, ", ")
		}
	}
	repeatables, err := all.Repeatables(false)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for line := range strings.Lines(text + "\n") {
		switch {
		case strings.Contains(line, "@view"), strings.Contains(line, "@routine"):
			for _, r := range repeatables {
				b.WriteString(put.Replace(grantOn(line, r)))
			}
		case strings.Contains(line, "@tables"):
			b.WriteString(put.Replace(strings.Replace(line, "@tables", strings.Join(names, ", "), 1)))
		case strings.Contains(line, "@table"):
			for _, name := range names {
				b.WriteString(put.Replace(strings.NewReplacer("@table", name, "@columns", columns[name]).Replace(line)))
			}
		default:
			b.WriteString(put.Replace(line))
		}
	}
	return b.String(), nil
}

// grantOn returns the statement for a view or a routine, or an empty text if it is for the other kind.
func grantOn(line string, r Repeatable) string {
	switch view := strings.Contains(line, "@view"); {
	case view && r.Kind == "VIEW":
		return strings.Replace(line, "@view", r.Name, 1)
	case !view && r.Kind != "VIEW" && !strings.Contains(r.Statements[0], "SQL SECURITY INVOKER"): // such routines serve the other logins
		return strings.Replace(strings.Replace(line, "@routine", r.Name, 1), "@kind", r.Kind, 1)
	}
	return ""
}

// databaseOf returns the name of a server's database.
func databaseOf(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(u.Path, "/")
}

func (e *Engine) quoteName(name string) string {
	return e.quote + strings.ReplaceAll(name, e.quote, e.quote+e.quote) + e.quote
}

// quoteLogin writes a login as GRANT wants it.
func (e *Engine) quoteLogin(login string) string {
	if e.account != nil {
		return e.account(login)
	}
	return e.quoteName(login)
}
