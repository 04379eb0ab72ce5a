// Package engine is the room of all that differs between PostgreSQL, MySQL and MariaDB, and
// SQLite. It knows statements by their names, and no job: what a statement is about is the store's.
//
//   - An Engine is one of them: how it opens a connection, encodes a value, says what an error means,
//     and what an executor has to ask of it. Each has one file, and a folder below sql.
//   - The texts are in sql/queries.sql, for all engines, and in sql/<engine>/queries.sql, whose
//     statements stand in the place of those of the same name. As they are sent, they are in testdata.
//   - A DB runs statements by name, each by itself or in a transaction, waits for locks no longer than
//     it may, and tries again what lost against another. Every error of a driver leaves by DB.Wrap.
package engine
