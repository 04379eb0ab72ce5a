// Package engine holds all that differs between PostgreSQL, MySQL and MariaDB, and SQLite. It knows
// statements by their names, but no jobs: package store knows what a statement is about.
//
//   - An Engine is one of them. It knows how to open a connection, how to encode a value, what an
//     error means, and what the executor of SQL needs to know. Each engine has files that begin with
//     its name, and a folder below sql.
//   - The texts of the statements are in sql/queries.sql for all engines, and in
//     sql/<engine>/queries.sql. A statement there replaces the shared one of the same name. The final
//     texts are in testdata.
//     MYSQL.md has what differs between MySQL and MariaDB, which are one engine.
//     sqlserver has none: it can only be a target, in which steps run their statements.
//   - A DB runs statements by name, each alone or in a transaction. It bounds the waits for locks, and
//     repeats a transaction that lost against another. Every error of a driver passes DB.Wrap.
package engine
