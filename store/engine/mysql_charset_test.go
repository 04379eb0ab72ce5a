package engine

import "testing"

// A step with arguments does not set the client's character set to one in which a backslash may be a part of a character.
func TestCharsetThatBreaksArguments(t *testing.T) {
	t.Parallel()
	for text, refused := range map[string]bool{
		"SET NAMES gbk":                                     true,
		"set names 'Big5' COLLATE big5_bin":                 true,
		"SET @a = 1, NAMES `sjis`":                          true,
		"SET NAMES ?":                                       true,
		"SET NAMES DEFAULT":                                 true,
		"SET CHARACTER SET gb18030":                         true,
		"SET CHAR /* of the client */ SET cp932":            true,
		"SET CHARSET gb2312":                                true,
		"SET character_set_client = gbk":                    true,
		"SET SESSION `character_set_client` := 'gbk'":       true,
		"SET @@session.character_set_client = 28":           true,
		"SET character_set_client=@@character_set_server":   true,
		"SET character_set_client = CONCAT('g', 'bk')":      true,
		"SET character_set_client = (SELECT 'gbk')":         true,
		"/*!50000 SET NAMES gbk */":                         true,
		"SET /*M! NAMES gbk */":                             true,
		"-- of the client\nSET NAMES gbk":                   true,
		"BEGIN NOT ATOMIC SET NAMES gbk; SELECT 1; END":     true,
		"EXECUTE IMMEDIATE 'SET NAMES ''gbk'''":             true,
		"PREPARE p FROM 'SET NAMES gbk'":                    true,
		"SET @text = 'SET NAMES gbk'":                       true, // to be executed
		"SET NAMES utf8mb4 COLLATE utf8mb4_bin":             false,
		"SET NAMES latin1":                                  false,
		"SET character_set_client = 'utf8mb3'":              false,
		"SET character_set_results = gbk":                   false,
		"SET @names = 3, @charset = @names, @b = 'gbk'":     false,
		"SET @n = (SELECT names FROM t WHERE what = 'gbk')": false,
		"SET @a = 1 /* NAMES gbk */":                        false,
		"SET @a = 1 # NAMES gbk":                            false,
		"UPDATE t SET names = 3, charset = 'gbk'":           false,
		"INSERT INTO t VALUES ('SET NAMES gbk', ?)":         false,
		"CREATE TABLE t (n varchar(10) CHARACTER SET gbk)":  false,
		"SELECT CONVERT(n USING gbk), 'names gbk' FROM t":   false,
	} {
		if got := mysqlEngine.Refuses(text, true); (got != "") != refused {
			t.Errorf("%s: %q", text, got)
		}
		if got := mysqlEngine.Refuses(text, false); got != "" {
			t.Errorf("%s, without arguments: %q", text, got)
		}
	}
}
