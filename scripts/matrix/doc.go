// Matrix runs the suite on each engine and version that it is given, one after the other, and prints
// one table at its end: engine, version, suite, and how many tests passed, failed and were not run.
//
//	matrix -servers .build/testservers sqlite postgres postgres=12 mariadb=newest mysql
//
// A row is named as in DBJOBS_TEST_DATABASES, with a version as in -versions of testservers. The exit code is 1 if
// a test failed, if a package did not build or end, or if a server was not available.
//
// The suites are groups of packages: store, tick, cmd, and plans, which asks the server how it executes statements
// over large tables (the tests TestExplain of tick/load). The long proofs of tick/crash and tick/load are left
// out, and so are packages that use no database. Tests are counted from the events of go test, which stay in -dir,
// in a file for each engine, version and suite. A test with subtests counts as its subtests. Tests that skip
// themselves count as not run; the reason is in the events.
//
// With -table nothing is run: the table is made from the events of earlier runs. A suite that is run alone keeps
// the events of the other suites, so the parts of a long run may be nights apart.
package main
