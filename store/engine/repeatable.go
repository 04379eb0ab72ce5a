package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// Repeatable is an object of the schema that is replaced instead of migrated: a view or a routine. Its file is one of
// three. sql/views/NAME.sql has a text that all engines share as they share statements, with macros and with
// "dbjobs." before our names. sql/ENGINE/views/NAME.sql replaces the shared one. sql/ENGINE/routines/NAME.sql is a
// routine. The text of an engine's own file is used unchanged, but for lines of routines that name a word of the caller's, such as
// @column: the line is repeated for each policy of a job, with commas between.
//
// The first statement of a file makes the object, and begins a line with CREATE VIEW, CREATE FUNCTION or CREATE
// PROCEDURE. The engine decides how the object is replaced. The following statements belong to the object, such as
// COMMENT ON. Each statement ends at a line that has only a semicolon, so the body of a routine may have other
// semicolons. An engine has only one routine of a name.
type Repeatable struct {
	Kind       string // VIEW, FUNCTION or PROCEDURE
	Name       string // as statements write it, such as dbjobs.v_jobs
	Statements []string
}

var (
	aloneEnd = lazyregexp.New(`(?m)^;[ \t]*$`)
	creation = lazyregexp.New(`(?m)^CREATE (VIEW|FUNCTION|PROCEDURE) ([\w.]+)`)
)

// Repeatables returns the views and then the routines of the engine, in the order of the names of
// their files. If rows belong to logins, a view that hides rows is also a barrier. Callers must not
// change the result, because it is read only once.
func (all *Statements) Repeatables(owners bool) ([]Repeatable, error) {
	if owners && all.e.barrier != nil {
		return barred(all)
	}
	return repeatables(all)
}

var (
	repeatables = kept((*Statements).readRepeatables)
	barred      = kept((*Statements).bar)
)

// bar makes each view a barrier.
func (all *Statements) bar() ([]Repeatable, error) {
	list, err := repeatables(all)
	out := slices.Clone(list)
	for i, r := range out {
		if r.Kind == "VIEW" {
			out[i].Statements = slices.Clone(r.Statements)
			all.e.barrier(&out[i])
		}
	}
	return out, err
}

func (all *Statements) readRepeatables() (out []Repeatable, err error) {
	e := all.e
	var each []*strings.Replacer
	if all.each != nil {
		each = all.each()
	}
	for _, folders := range [][]string{{"sql/views", "sql/" + e.Name + "/views"}, {"sql/" + e.Name + "/routines"}} {
		paths := map[string]string{}
		for _, folder := range folders {
			list, err := fs.Glob(files, folder+"/*.sql")
			if err != nil {
				return nil, err
			}
			for _, file := range list {
				paths[path.Base(file)] = file
			}
		}
		for _, name := range slices.Sorted(maps.Keys(paths)) {
			b, err := files.ReadFile(paths[name])
			if err != nil {
				return nil, err
			}
			text := string(b)
			switch dir := path.Dir(paths[name]); {
			case dir == "sql/views":
				text, err = e.viewText(text)
			case path.Base(dir) == "routines":
				text = repeatLines(text, each)
			}
			r, faulty := readRepeatable(text)
			if err = cmp.Or(err, faulty); err != nil {
				return nil, fmt.Errorf("%s: %w", paths[name], err)
			}
			if r.Kind == "VIEW" && e.viewAlso != nil {
				r.Statements = append(r.Statements, e.viewAlso(r.Name, r.comment())...)
			}
			out = append(out, r)
		}
	}
	return out, nil
}

// visibleTo matches the place of the condition that this login may see a row of an owner.
var visibleTo = lazyregexp.New(`@visible\(((?:[^()]|\([^()]*\))*)\)`)

// viewText makes the engine's text of a shared view.
func (e *Engine) viewText(text string) (string, error) {
	comment, text, _ := strings.Cut(text, "CREATE ")
	text = visibleTo.ReplaceAllString(text, "@visible_before $1 @visible_after")
	s, err := (&Statements{e: e, words: e.views}).translate("view", text)
	return comment + "CREATE " + s.text, err
}

// repeatLines writes each line in which the caller puts something once for each of what is put in, with commas between.
func repeatLines(text string, each []*strings.Replacer) string {
	if len(each) == 0 || !strings.Contains(text, "@") {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		if each[0].Replace(line) == line {
			b.WriteString(line)
			continue
		}
		var list []string
		for _, r := range each {
			list = append(list, r.Replace(strings.TrimSuffix(line, "\n")))
		}
		b.WriteString(strings.Join(list, ",\n") + "\n")
	}
	return b.String()
}

func readRepeatable(text string) (r Repeatable, err error) {
	for _, st := range aloneEnd.Split(text, -1) {
		if st = strings.TrimSpace(st); strings.TrimSpace(commentLine.ReplaceAllString(st, "")) != "" {
			r.Statements = append(r.Statements, st)
		}
	}
	if len(r.Statements) == 0 {
		return r, fmt.Errorf("it has no statement")
	}
	made := creation.FindStringSubmatch(r.Statements[0])
	if made == nil {
		return r, fmt.Errorf("want a line that begins with CREATE VIEW, CREATE FUNCTION or CREATE PROCEDURE")
	}
	r.Kind, r.Name = made[1], made[2]
	return r, nil
}

// comment returns the first sentence of the comment lines with which the first statement begins.
func (r Repeatable) comment() string {
	var words []string
	for line := range strings.Lines(r.Statements[0]) {
		text, ok := strings.CutPrefix(line, "--")
		if !ok {
			break
		}
		words = append(words, strings.TrimSpace(text))
	}
	first, _, _ := strings.Cut(strings.Join(words, " "), ". ")
	return strings.TrimSuffix(first, ".")
}

// Digest returns a text that changes when the text of a view or of a routine changes, or, with owners, a statement by which
// rows belong to logins.
func (all *Statements) Digest(owners bool) (string, error) {
	repeatables, err := all.Repeatables(owners)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, r := range repeatables {
		for _, st := range r.Statements {
			fmt.Fprintf(h, "%d:%s", len(st), st)
		}
	}
	if owners {
		list, err := all.e.Ownership(true)
		if err != nil {
			return "", err
		}
		for _, st := range list {
			fmt.Fprintf(h, "%d:%s", len(st), st)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// drop returns the statement that drops the object.
func (r Repeatable) drop() string {
	return "DROP " + r.Kind + " IF EXISTS " + r.Name
}

// replacing returns the statements that replace an object of the same name. With orReplace, it is one
// statement, which keeps the rights on the object. Otherwise the object is dropped and made again.
func (r Repeatable) replacing(orReplace bool) []string {
	if !orReplace {
		return append([]string{r.drop()}, r.Statements...)
	}
	out := slices.Clone(r.Statements)
	out[0] = creation.ReplaceAllString(out[0], "CREATE OR REPLACE $1 $2")
	return out
}

// RepeatableText returns the statements that make the views and routines, for the engine's own client.
// The client of MySQL and MariaDB ends a statement at each semicolon, unless the text names another end.
func (e *Engine) RepeatableText(all []Repeatable) string {
	var b strings.Builder
	for _, r := range all {
		for _, st := range r.replacing(slices.Contains(e.orReplace, r.Kind)) {
			if e.clientSplits && strings.Contains(st, ";") {
				fmt.Fprintf(&b, "DELIMITER ;;\n%s\n;;\nDELIMITER ;\n\n", st)
				continue
			}
			fmt.Fprintf(&b, "%s\n;\n\n", st)
		}
	}
	return b.String()
}

// Replace makes views and routines, and replaces those of the same names.
//
// Crash window: on engines on which DDL ends a transaction, some of them may still be the old ones, and one
// may be missing. Their digest is recorded afterwards, so the next migrator replaces all of them again.
func (db *DB) Replace(ctx context.Context, tx *Tx, all []Repeatable) error {
	if db.e.replaces != nil {
		return db.e.replaces(ctx, db, tx, all)
	}
	for _, r := range all {
		if err := db.replace(ctx, tx, r); err != nil {
			return err
		}
	}
	return nil
}

// replaceRoutine is the name of CREATE OR REPLACE for a routine, among the statements that can be spared.
const replaceRoutine = "replace_routine"

// replace replaces one of them. If only some servers can do that and keep the rights, it tries the statement.
func (db *DB) replace(ctx context.Context, tx *Tx, r Repeatable) error {
	if slices.Contains(db.e.mayReplace, r.Kind) && !db.isSpared(replaceRoutine) {
		if err := db.spare(replaceRoutine, db.bringIn(ctx, tx, r, r.replacing(true))); !errors.Is(err, errSpared) {
			return err
		}
	}
	return db.bringIn(ctx, tx, r, r.replacing(slices.Contains(db.e.orReplace, r.Kind)))
}

// bringIn runs the statements of a view or a routine.
func (db *DB) bringIn(ctx context.Context, tx *Tx, r Repeatable, statements []string) error {
	for _, st := range statements {
		_, err := db.ddl(tx).ExecContext(ctx, st)
		if err == nil {
			continue
		}
		if right := db.e.rightsOf[r.Kind]; right != "" && db.class(err) == forbidden {
			return fmt.Errorf("%w; this needs the rights %s on the database", db.Wrap("bring in "+r.Name, err), right)
		}
		return db.Wrap("bring in "+r.Name, err)
	}
	return nil
}
