package engine

import "testing"

// Rows that nobody asks for are lost, and a check that counts them finds none.
func TestMySQLReturnsRows(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"SELECT 1", "(SELECT 1)", "HELP 'SELECT'", "CACHE INDEX t IN hot", "LOAD INDEX INTO CACHE t", "ALTER TABLE t CHECK PARTITION p0",
		"ALTER TABLE `a b` /* x */ ANALYZE\nPARTITION ALL", "/*! SELECT 1 */", "/*!50000 (SELECT 1) */", "/*M!100100 SELECT '/*' */", "/* not /*! SELECT */ SELECT 1",
		"-- /*!\nSELECT 1", "SELECT/*!SQL_NO_CACHE*/1", "INSERT INTO t VALUES (1) /*!80000 x */ RETURNING n", "SET STATEMENT max_statement_time = 9 FOR /*! SELECT */ 1"} {
		if !mysqlReturnsRows(text) {
			t.Errorf("%q returns rows", text)
		}
	}
	for _, text := range []string{"INSERT INTO t VALUES ('/*! SELECT 1 */')", "DELETE FROM t /*! LIMIT 1 */", "/* SELECT */ DELETE FROM t", "/*!40101 SET NAMES utf8mb4 */",
		"ALTER TABLE t ADD COLUMN `CHECK PARTITION` int", "ALTER TABLE t ADD CONSTRAINT c CHECK (n > 0)", "LOAD DATA INFILE 'f' INTO TABLE t", "/*!", "/*!*/", "/**/"} {
		if mysqlReturnsRows(text) {
			t.Errorf("%q returns no rows", text)
		}
	}
}
