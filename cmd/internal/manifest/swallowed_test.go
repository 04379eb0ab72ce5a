package manifest

import (
	"strings"
	"testing"
)

// What a comment takes because of how YAML reads the file is found; a comment that takes what its author sees is not.
func TestSwallowed(t *testing.T) {
	long := strings.Repeat("x", longestLine)
	for text, want := range map[string]string{
		"sql: >\n      DELETE FROM t -- old ones\n      WHERE at < 1":          `the comment "-- old ones" takes "WHERE at < 1"`,
		"sql: DELETE FROM t -- old ones\n      WHERE at < 1":                   `the comment "-- old ones" takes "WHERE at < 1"`,
		"sql: \"DELETE FROM t\n      WHERE a = '--' -- x\r\n      AND b = 1\"": `the comment "-- x" takes "AND b = 1"`,
		"sql: [{text: 'SELECT 1 --\n      FROM t'}]":                           `the comment "--" takes "FROM t"`,
		"sql: SELECT 1\n\n      -- x\n      FROM t":                            `the comment "-- x" takes "FROM t"`,
		"shell: >-\n      cd /srv # go\n      pg_dump shop":                    `the comment "# go" takes "pg_dump shop"`,
		"steps: [{shell: {run: \"a # b\n      c\"}}]":                          `the comment "# b" takes "c"`,
		"sql: UPDATE t SET x = data #>> '{a}' WHERE id = 1":                    `the text ends before "#>> '{a}' WHERE id = 1"`,
		"sql: UPDATE t SET x = 'no #1'":                                        `the text ends before "#1'"`,
		"sql: UPDATE t\n      SET x = 'no #1'":                                 `the text ends before "#1'"`,
		"shell: echo \"a #x\"":                                                 `the text ends before "#x\""`,

		"sql: >\n      -- nightly\n\n      DELETE FROM t -- old ones\n      WHERE at < 1": `the comment "-- old ones" takes "WHERE at < 1"`,
		"sql: >\n      SELECT '--' AS x,\n      y -- comment\n      FROM t":               `the comment "-- comment" takes "FROM t"`,
		"sql: >\n      DELETE FROM t # old ones\n      WHERE at < 1":                      `on MySQL and MariaDB, the comment "# old ones" takes "WHERE at < 1"`,
		"sql: \"DELETE FROM t\n      # old ones\n      -- b\n      WHERE at < 1\"":        `on MySQL and MariaDB, the comment "# old ones" takes "WHERE at < 1"`,
		"sql: UPDATE t SET data = data #- '{a}' WHERE id = 1":                             `the text ends before "#- '{a}' WHERE id = 1"`,
		"sql: UPDATE t SET data = data #-$1":                                              `the text ends before "#-$1"`,
		"sql: DELETE FROM t WHERE #id = 1":                                                `the text ends before "#id = 1"`,
		"sql: SELECT 1,\n      'a', #b":                                                   `the text ends before "#b"`,
		"sql: 'DELETE FROM t -- it''s old\n      WHERE at < 1'":                           `the comment "-- it's old" takes "WHERE at < 1"`,
		"shell: >\n      rm -rf /tmp/x/* # old\n      cp /srv/*/a /dst":                   `the comment "# old" takes "cp /srv/*/a /dst"`,
		"sql: \"DELETE FROM t -- a\n      -- b\n      WHERE at < 1\"":                     `the comment "-- a" takes "WHERE at < 1"`,

		"sql: >\n      SELECT 1\n      -- a\n      -- b\n      ;":                                         "",
		"sql: 'SELECT 1 -- a\n      -- it''s b'":                                                          "",
		"sql: >\n      SELECT id INTO #old FROM t\n      DELETE FROM t WHERE id IN (SELECT id FROM #old)": "",
		"sql: \"SELECT 1 -- a\n      -- b\"":                                                              "",
		"sql: >\n      SELECT data #> a, b ## c,\n      d #- e, f#g\n      FROM t":                        "",
		"sql: >\n      SELECT '# a',\n      b FROM t":                                                     "",
		"sql: SELECT 1 -- don't # a remark":                                                               "",
		"sql: SELECT 1 -- a #> b":                                                                         "",
		"sql: SELECT \"don't\" # a remark":                                                                "",
		"sql: DELETE FROM t #--- old ---":                                                                 "",
		"sql: DELETE FROM brand # all brands":                                                             "",
		"shell: set # shows the variables":                                                                "",
		"sql: >\n      SELECT 1 /* it's\n      -- x\n      */ FROM t":                                     "",
		"sql: |\n      DELETE FROM t -- old ones\n      WHERE at < 1":                                     "",
		"sql: >\n      SELECT 1\n\n      -- x\n\n      FROM t -- y":                                       "",
		"sql: >\n      SELECT '-- x'\n      FROM t":                                                       "",
		"sql: SELECT 1 -- x -- y   # z":                                                                   "",
		"sql: \"SELECT 1 -- 'x'\" # 'z":                                                                   "",
		"sql: [SELECT 1 --, SELECT 2 -- x]":                                                               "",
		"sql: 'SELECT 1 -- x' # > y":                                                                      "",
		"shell: >\n      test $# -eq 0 &&\n      echo ${x#y}":                                             "",
		"exec: [echo, 'a # b\n      c']":                                                                  "",
		"http: {url: 'https://example.org', body: 'a -- b\n      c'}":                                     "",
		"sql: SELECT 1 /* " + long + " */ -- x":                                                           "",
		"sql: SELECT 1 -- " + long + "\n      FROM t":                                                     "",
	} {
		m, err := decode(t, "jobs:\n  a:\n    "+text+"\n")
		if err != nil {
			t.Errorf("%.100q: %v", text, err)
			continue
		}
		var got string
		for _, s := range m.Swallowed {
			got += s.Text
		}
		if (got == "") != (want == "") || !strings.HasPrefix(got, want) || len(m.Swallowed) > 1 {
			t.Errorf("%.100q: %q, want %q", text, got, want)
		}
	}
}
