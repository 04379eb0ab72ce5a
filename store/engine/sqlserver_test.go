package engine

import (
	"errors"
	"io"
	"strings"
	"testing"

	mssql "github.com/microsoft/go-mssqldb"
)

// A URL of SQL Server names a database and only options that have an effect. It is for targets.
func TestSQLServerURL(t *testing.T) {
	for url, want := range map[string]string{
		"sqlserver://ann:geheimnis@h:1433?database=shop":                                  "",
		"sqlserver://ann:geheimnis@h/SQLEXPRESS?database=shop&encrypt=true&App+Name=jobs": "",
		"sqlserver://ann:geheimnis@h/shop":                                                "names no database",
		"sqlserver://ann:geheimnis@/x?database=shop":                                      "names no host",
		"sqlserver://ann@h?database=shop&password=geheimnis":                              `option "password" is not known`,
		"sqlserver://ann:geheimnis@h?database=shop&log=255":                               `option "log" is not known`,
		"sqlserver://ann:geheimnis@h?database=shop&encrypt=maybe":                         "invalid encrypt 'maybe'",
		"sqlserver://ann:geheimnis@h?database=shop&certificate=/nowhere/ca.pem":           "no such file",
		"mssql://ann:geheimnis@h?database=shop":                                           sqlserverForm,
	} {
		db, err := New(url, Options{Target: true})
		if err == nil {
			_ = db.Close()
		}
		if got := errorText(err); want == "" && err != nil || !strings.Contains(got, want) || strings.Contains(got, "geheimnis") {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
	if _, err := New("sqlserver://h?database=shop", Options{}); !strings.Contains(errorText(err), "cannot hold dbjobs' own tables") {
		t.Error(err)
	}
	if got := sqlserver.Where("sqlserver://ann:geheimnis@h:1433/X?database=shop&encrypt=true"); got != "sqlserver://h:1433/X?database=shop" {
		t.Error(got)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// ? is a placeholder unless it is in a text, a name or a comment.
func TestPlacesInSQLServer(t *testing.T) {
	text := "SELECT '?', 'it''s ?', [a?b], \"?\", ? -- ?\n/* ? */ WHERE a = ?"
	if got, err := sqlserverPlaces(text, 2); err != nil || got != strings.Replace(strings.Replace(text, "\", ?", "\", @p1", 1), "a = ?", "a = @p2", 1) {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := sqlserverPlaces("SELECT @p2, @p1 -- ok", 2); err != nil || got != "SELECT @p2, @p1 -- ok" {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := sqlserverPlaces(text, 3); err == nil {
		t.Error("three arguments for two places")
	}
	for text, want := range map[string]string{
		"/* a /* b */ ? */ SELECT ?":       "/* a /* b */ ? */ SELECT @p1", // comments nest there
		"SELECT ? /* /* ? */":              "SELECT @p1 /* /* ? */",        // and this one is open
		"SELECT [a]]b ?], ? FROM t -- /*?": "SELECT [a]]b ?], @p1 FROM t -- /*?",
	} {
		if got, err := sqlserverPlaces(text, 1); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
	}
}

// A line with GO is refused, unless it is in a literal, a name or a comment.
func TestGoOfSQLServer(t *testing.T) {
	for text, refused := range map[string]bool{
		"SELECT 1\nGO\nSELECT 2":             true,
		"SELECT 'a' -- it's\n  go 5 ;\r\n":   true,
		"SELECT 1\nGO -- of it\nSELECT 2":    true,
		"SELECT 1\ngo 5; -- of it":           true,
		"SELECT 1\nGO 5\r\ngo;\r\n":          true,
		"SELECT 1 -- of it\nGO2":             false,
		"-- of it\n-- GO\nSELECT 1":          false,
		"PRINT 'one\nGO\ntwo'":               false,
		"/* one /* of */\nGO\n*/ SELECT 1":   false,
		"SELECT 1 AS [\nGO\n]":               false,
		"SELECT 1\n/* of */ GO":              false, // a name
		"SELECT 'a\n' \nGO\n SELECT 'b\nGO'": true,
	} {
		if got := sqlserver.Refuses(text, false); (got != "") != refused {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// Errors are known by their numbers. The loss of a session is known by what the driver says about it.
func TestErrorsOfSQLServer(t *testing.T) {
	deadlock := &sqlserverError{[]mssql.Error{{Number: 1205, Class: 13, State: 51, Message: "victim"}}, nil}
	cut := &sqlserverError{[]mssql.Error{{Number: 596, Class: 21}}, io.EOF}
	for _, c := range []struct {
		err  error
		want class
	}{{deadlock, transient}, {cut, unreachable}, {io.ErrUnexpectedEOF, unreachable}, {mssql.ServerError{}, unreachable},
		{mssql.Error{Number: 18456}, refused}, {mssql.Error{Number: 1222}, lockTimeout}, {mssql.Error{Number: 2627}, duplicate}, {errors.New("?"), other}} {
		if got := classifySQLServer(c.err); got != c.want {
			t.Errorf("%v is of class %d, want %d", c.err, got, c.want)
		}
	}
	many := &sqlserverError{make([]mssql.Error, 9), nil}
	if got := many.Error(); strings.Count(got, "Msg 0") != 5 || !strings.HasSuffix(got, "and 4 more errors") {
		t.Error(got)
	}
	if f, ok := describeSQLServer(many, ""); !ok || f.Code != "0" {
		t.Errorf("%+v", f)
	}
}
