package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// The driver writes arguments into the text of a statement, as UTF-8, with a backslash before each quote. The server reads the text
// in the character set that the session has for its client. In some, a backslash may be the second byte of a character: then the
// quote ends the literal, and the server executes the rest of the argument.
var (
	// clientCharset matches what sets that character set, up to the first word or sign of the value.
	clientCharset = lazyregexp.New("(?i)(?:\\b(?:NAMES|CHARSET|CHAR(?:ACTER)?\\s+SET)\\b|\\bcharacter_set_client\\b[\"'`\\s]*:?=)[\"'`\\s]*(\\w+\\s*\\(?|[?@(])")
	// unsafeCharset matches those character sets, and values that the text does not show.
	unsafeCharset = lazyregexp.New(`(?i)^(big5|cp932|gb\w+|sjis|default|\d+)\s*$|[?@(]$`)
	// mysqlSetsNothing lists verbs of statements that change no setting of the session, whatever words they have.
	mysqlSetsNothing = append([]string{"SELECT", "WITH", "CREATE", "ALTER", "LOAD"}, mysqlShortAnswers...)
)

// mysqlRefuses refuses to set such a character set in a session that gets arguments. A routine needs no look: the server
// undoes at the end of a routine what it has set of this.
func mysqlRefuses(text string, arguments bool) string {
	if !arguments || !hasWord(text, "names", "char") || slices.Contains(mysqlSetsNothing, verb(mysqlPlain(text))) {
		return ""
	}
	for _, found := range clientCharset.FindAllStringSubmatch(mysqlSaid(text), -1) {
		if unsafeCharset.MatchString(found[1]) {
			return fmt.Sprintf("it sets the character set of the session (%.100q), and the step has arguments, which are sent as UTF-8: "+
				"the server could take a part of an argument for SQL. Leave the character set, and convert in SQL, as in CONVERT(? USING gbk)", found[0])
		}
	}
	return ""
}

// mysqlSaid is a text without its comments, but with the words of those that the server executes. Literals stay: one may be
// a statement, as in EXECUTE IMMEDIATE 'SET NAMES gbk'.
func mysqlSaid(text string) string {
	return placesInMySQL.ReplaceAllStringFunc(text, func(s string) string {
		switch begin := executed.FindString(s); {
		case begin != "":
			return " " + s[len(begin):len(s)-len("*/")] + " "
		case strings.HasPrefix(s, "/*") || strings.HasPrefix(s, "--") || s[0] == '#':
			return " "
		}
		return s
	})
}
